"""The terms, in the order in which the course meets them."""

from __future__ import annotations

import re

from softscope.lab.glossary.term import Term

TERMS: tuple[Term, ...] = (
    Term("softmax", "softmax", "softmax(x)", "softmax", avoid=("软最大化",)),
    Term("logit", "分数", "x", "softmax(x)", also=("logit",), avoid=("打分", "对数几率", "得分")),
    Term("weight", "权重", "p", "jacobian(weights)", avoid=("比重",)),
    Term("temperature", "温度", "T", "softmax(temperature)"),
    Term("gain", "增益", "k = 1/T", "softmax(temperature)", loose=True),  # a gain of time is none
    Term("sharpness", "尖锐度", "1 − H/log n", "Partition.sharpness", also=("尖锐",), avoid=("锐利度",)),
    Term("largest weight", "最大权重", "max p", "Partition.peak", forms=("peak",), also=("最大的权重",), loose=True),
    Term("entropy", "熵", "H", "Partition.entropy", forms=("entropies",)),
    Term("effective support", "有效支撑数", "e^H", "Partition.effective_support"),
    Term("collision", "碰撞概率", "Σp²", "Partition.collision", forms=("collision probability",)),
    Term("log-sum-exp", "log-sum-exp", "log Σ e^x", "logsumexp"),
    Term("log-softmax", "log-softmax", "log p", "log_softmax", also=("log_softmax",)),
    Term("sparsemax", "sparsemax", "max(x − τ, 0)", "sparsemax"),
    Term("entmax", "entmax", "α-entmax", "entmax"),
    Term("support", "支撑集", "{p > 0}", "sparsemax", loose=True),
    Term("Jacobian", "雅可比矩阵", "J", "jacobian", also=("雅可比",), avoid=("雅各比", "雅克比", "Jacobian")),
    Term("Jacobian product", "雅可比乘积", "J v", "jacobian_product", also=("雅可比矩阵的乘积",)),
    Term("trace", "迹", "Σ s(1−s)", "Partition.jacobian_trace", loose=True),
    Term("gradient", "梯度", "∂L/∂x", "gradient_readings"),
    Term("saturation", "饱和", "s(1−s) → 0", "Partition.jacobian_trace", forms=("saturated",)),
    Term("cross-entropy", "交叉熵", "−log p_y", "cross_entropy"),
    Term("attention", "注意力", "softmax(QKᵀ/√d)V", "attention", avoid=("关注力",)),
    Term("query", "query", "q", "attention(q)", forms=("queries",), also=("查询",), loose=True),
    Term("key", "key", "k", "attention(k)", also=("键",), loose=True),
    Term("value", "value", "v", "attention(v)", also=("值",), loose=True),
    Term("scale", "缩放", "1/√d", "attention(scale)", loose=True),
    Term("mask", "掩码", "M", "attention(mask)", forms=("masked",), also=("遮住",), avoid=("遮罩", "蒙版"), loose=True),
    Term("causal", "因果", "j ≤ i", "attention(causal)"),
    Term("window", "窗口", "−l ≤ j − i ≤ r", "attention(window)", loose=True),
    Term("soft cap", "软上限", "c·tanh(s/c)", "attention(softcap)"),
    Term("sink", "sink", "e^s", "attention(sink)", loose=True),
    Term("score function", "打分函数", "s(q, k)", "additive_attention"),
    Term("additive attention", "加性注意力", "v·tanh(Wq + Uk)", "additive_attention"),
    Term("partition", "partition", "A(β)", "partition", also=("配分",), avoid=("分区函数",), loose=True),
    Term("merge", "合并", "A ⊕ B", "Partition.merge", forms=("merging", "merged"), loose=True),
    Term("variance", "方差", "A″", "Partition.variance"),
    Term("transmission", "传导率", "n·‖dS‖/‖dP‖", "gradient_readings"),
    Term("blocked", "被阻断", "n·‖dS‖/‖dP‖ → 0", "gradient_readings", also=("受阻",)),
    Term("advantage", "优势", "(μ − Σ p·dP)/σ", "gradient_readings"),  # mean and deviation of dP
    Term("calibration", "校准", "ECE", "fit_temperature"),
    Term("distillation", "蒸馏", "T²·KL", "distillation_loss"),
    Term("sampling", "采样", "y ~ p", "sample", avoid=("取样",)),
)


def find(word: str) -> Term | None:
    """The term with that English, Chinese or code name; of a code name, a part will do.

    >>> find("Entropy").zh, find("熵").en, find("logits").zh, find("fish")
    ('熵', 'entropy', '分数', None)
    """
    wanted = word.strip().lower()
    for term in TERMS:
        names = (term.en, f"{term.en}s", term.zh, term.code, *term.forms)
        if wanted in {name.lower() for name in names}:
            return term
    return next((term for term in TERMS if wanted in re.split(r"[.()]", term.code.lower()) if wanted), None)
