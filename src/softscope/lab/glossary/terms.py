"""The terms, in the order the course introduces them."""

from __future__ import annotations

import re

from softscope.lab.glossary.term import Term

TERMS: tuple[Term, ...] = (
    Term(en="softmax", zh="softmax", symbol="softmax(x)", code="softmax", avoid=("软最大化",)),
    Term(en="logit", zh="分数", symbol="x", code="softmax(x)", also=("logit",), avoid=("打分", "对数几率", "得分")),
    Term(en="weight", zh="权重", symbol="p", code="jacobian(weights)", avoid=("比重",)),
    Term(en="temperature", zh="温度", symbol="T", code="softmax(temperature)"),
    Term(en="gain", zh="增益", symbol="k = 1/T", code="softmax(temperature)", loose=True),  # not "a gain of time"
    Term(
        en="sharpness", zh="尖锐度", symbol="1 − H/log n", code="Partition.sharpness", also=("尖锐",), avoid=("锐利度",)
    ),
    Term(
        en="largest weight",
        zh="最大权重",
        symbol="max p",
        code="Partition.peak",
        forms=("peak",),
        also=("最大的权重",),
        loose=True,
    ),
    Term(en="entropy", zh="熵", symbol="H", code="Partition.entropy", forms=("entropies",)),
    Term(en="effective support", zh="有效支撑数", symbol="e^H", code="Partition.effective_support"),
    Term(en="collision", zh="碰撞概率", symbol="Σp²", code="Partition.collision", forms=("collision probability",)),
    Term(en="log-sum-exp", zh="log-sum-exp", symbol="log Σ e^x", code="logsumexp"),
    Term(en="log-softmax", zh="log-softmax", symbol="log p", code="log_softmax", also=("log_softmax",)),
    Term(en="sparsemax", zh="sparsemax", symbol="max(x − τ, 0)", code="sparsemax"),
    Term(en="entmax", zh="entmax", symbol="α-entmax", code="entmax"),
    Term(en="support", zh="支撑集", symbol="{p > 0}", code="sparsemax", loose=True),
    Term(
        en="Jacobian",
        zh="雅可比矩阵",
        symbol="J",
        code="jacobian",
        also=("雅可比",),
        avoid=("雅各比", "雅克比", "Jacobian"),
    ),
    Term(en="Jacobian product", zh="雅可比乘积", symbol="J v", code="jacobian_product", also=("雅可比矩阵的乘积",)),
    Term(en="trace", zh="迹", symbol="Σ s(1−s)", code="Partition.jacobian_trace", loose=True),
    Term(en="gradient", zh="梯度", symbol="∂L/∂x", code="gradient_readings"),
    Term(en="saturation", zh="饱和", symbol="s(1−s) → 0", code="Partition.jacobian_trace", forms=("saturated",)),
    Term(en="cross-entropy", zh="交叉熵", symbol="−log p_y", code="cross_entropy"),
    Term(en="attention", zh="注意力", symbol="softmax(QKᵀ/√d)V", code="attention", avoid=("关注力",)),
    Term(en="query", zh="query", symbol="q", code="attention(q)", forms=("queries",), also=("查询",), loose=True),
    Term(en="key", zh="键", symbol="k", code="attention(k)", also=("key",), loose=True),
    Term(en="value", zh="value", symbol="v", code="attention(v)", also=("值",), loose=True),
    Term(en="scale", zh="缩放", symbol="1/√d", code="attention(scale)", loose=True),
    Term(
        en="mask",
        zh="掩码",
        symbol="M",
        code="attention(mask)",
        forms=("masked",),
        also=("遮住",),
        avoid=("遮罩", "蒙版"),
        loose=True,
    ),
    Term(en="causal", zh="因果", symbol="j ≤ i", code="attention(causal)"),
    Term(en="window", zh="窗口", symbol="−l ≤ j − i ≤ r", code="attention(window)", loose=True),
    Term(en="soft cap", zh="软上限", symbol="c·tanh(s/c)", code="attention(softcap)"),
    Term(en="sink", zh="sink", symbol="e^s", code="attention(sink)", loose=True),
    Term(en="score function", zh="打分函数", symbol="s(q, k)", code="additive_attention"),
    Term(en="additive attention", zh="加性注意力", symbol="v·tanh(Wq + Uk)", code="additive_attention"),
    Term(
        en="partition", zh="partition", symbol="A(β)", code="partition", also=("配分",), avoid=("分区函数",), loose=True
    ),
    Term(en="merge", zh="合并", symbol="A ⊕ B", code="Partition.merge", forms=("merging", "merged"), loose=True),
    Term(en="variance", zh="方差", symbol="A″", code="Partition.variance"),
    Term(en="transmission", zh="传导率", symbol="n·‖dS‖/‖dP‖", code="gradient_readings"),
    Term(en="blocked", zh="被阻断", symbol="n·‖dS‖/‖dP‖ → 0", code="gradient_readings", avoid=("受阻",)),
    Term(en="advantage", zh="优势", symbol="(μ − Σ p·dP)/σ", code="gradient_readings"),  # μ, σ: mean and sd of dP
    Term(en="calibration", zh="校准", symbol="ECE", code="fit_temperature"),
    Term(en="distillation", zh="蒸馏", symbol="T²·KL", code="distillation_loss"),
    Term(en="sampling", zh="采样", symbol="y ~ p", code="sample", avoid=("取样",)),
)


def find(word: str) -> Term | None:
    """Find the term by its English, Chinese or code name; part of a code name is enough.

    >>> find("Entropy").zh, find("熵").en, find("logits").zh, find("fish")
    ('熵', 'entropy', '分数', None)
    """
    wanted = word.strip().lower()
    for term in TERMS:
        names = (term.en, f"{term.en}s", term.zh, term.code, *term.forms)
        if wanted in {name.lower() for name in names}:
            return term
    return next((term for term in TERMS if wanted in re.split(r"[.()]", term.code.lower()) if wanted), None)
