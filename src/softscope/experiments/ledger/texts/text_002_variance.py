"""Text 002, parts I, III and VII: the formula, and the mean and variance of a dot product."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, estimate, generator, off_by, variance_of
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts.figures import by

_NAMES = {
    "normal": Text(zh="正态", en="normal"),
    "uniform": Text(zh="均匀", en="uniform"),
    "±1": same("±1"),
}


@functools.cache
def _moments(d: int) -> tuple[Any, list[Any], Any]:
    """E[q·k], Var(q_i k_i) for each i and Var(q·k), from independence and the moments of one component alone.

    The means are 0 and the variances 1; higher powers of q_i and k_i do not occur.
    """
    import sympy

    q, k = sympy.symbols(f"q1:{d + 1}"), sympy.symbols(f"k1:{d + 1}")
    moment = {0: 1, 1: 0, 2: 1}

    def mean(expression: Any) -> Any:
        terms = sympy.Poly(sympy.expand(expression), *q, *k).terms()
        return sum(factor * math.prod(moment[power] for power in powers) for powers, factor in terms)

    def variance(expression: Any) -> Any:
        return mean(expression**2) - mean(expression) ** 2

    products = [a * b for a, b in zip(q, k, strict=True)]
    return mean(sum(products)), [variance(x) for x in products], variance(sum(products))


@claim(
    "S2-01",
    says=Text(zh="注意力的公式是 softmax(QKᵀ/√d_k)V", en="Attention is softmax(QKᵀ/√d_k)V"),
    quote="在 Scaled Dot-Product Attention 中，为什么要除以 $\\sqrt{d_k}$？",
    where="L4-6",
    experiment="attention",
)
def _s2_01() -> Outcome:
    import torch

    rng = generator("S2-01")
    q, k, v = (rng.standard_normal((7, d)) for d in (64, 64, 5))
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    ours = off_by(ss.attention(q, k, v), weights @ v)
    tensors = [torch.from_numpy(x)[None] for x in (q, k, v)]
    sdpa = torch.nn.functional.scaled_dot_product_attention(tensors[0], tensors[1], tensors[2])
    theirs = off_by(sdpa[0], weights @ v)
    return Outcome.of(
        {"softscope.attention": ours < 1e-12, "torch scaled_dot_product_attention": theirs < 1e-12},
        measured=Text(
            zh=f"与公式最多相差 {max(ours, theirs):.1g}",
            en=f"differs from the formula by at most {max(ours, theirs):.1g}",
        ),
        because={
            "holds": Text(
                zh="这正是论文的式 1：每个查询的分数先除以 √d_k，再变成和为 1 的权重，用来对 v 加权平均；两个实现算出的都是它。",
                en="This is the paper's equation 1: each query's scores, divided by √d_k, become weights that sum to 1 and "
                "average v. Both implementations compute it.",
            )
        },
    )


@claim(
    "S2-03",
    says=Text(
        zh="分量独立、均值 0、方差 1 时，q·k 的均值是 0",
        en="For independent components of mean 0 and variance 1, E[q·k] = 0",
    ),
    quote="点积的均值：",
    where="I, L26-27",
    experiment="variance",
)
def _s2_03() -> Outcome:
    means = {d: dots.mean_in_sds(d) for d in dots.DIMENSIONS}
    derived, _, _ = _moments(3)
    return Outcome.of(
        {Text(zh="推导", en="derivation"): equal(derived, 0)}
        | {f"d = {d}": x.agrees(0.0, 0.05) for d, x in means.items()},
        measured=Text(
            zh=f"均值/√d：{by(means, '.3f')}（各 {means[1].n} 个样本）",
            en=f"mean/√d: {by(means, '.3f')} ({means[1].n} samples each)",
        ),
        because={
            "holds": Text(
                zh="每一项的均值都是 E[q_i]·E[k_i] = 0，和的均值也就是 0。",
                en="Every term has mean E[q_i]·E[k_i] = 0, and so does the sum.",
            )
        },
    )


@claim(
    "S2-04",
    says=Text(
        zh="分量独立时，点积的方差等于各项 q_i·k_i 的方差之和",
        en="For independent components, the variance of q·k is the sum of the variances of the q_i·k_i",
    ),
    quote="点积的方差：",
    where="I, L29-30",
    experiment="variance",
)
def _s2_04() -> Outcome:
    _, parts, whole = _moments(3)
    rng = generator("S2-04")
    shared = variance_of(3 * rng.standard_normal(100_000) * rng.standard_normal(100_000))
    return Outcome.of(
        {Text(zh="推导，d = 3", en="derivation, d = 3"): equal(whole, sum(parts))},
        measured=Text(
            zh=f"d = 3，推导：{whole} = {sum(parts)}；各分量全都相同时，抽样得 {shared:.2f}",
            en=f"d = 3, derived: {whole} = {sum(parts)}; with all components identical, sampled: {shared:.2f}",
        ),
        because={
            "holds": Text(
                zh=f"方差之外多出来的只有交叉项，分量独立时它们的均值为 0；各分量全都相同时就不是这样，得到 {shared.mean:.1f}。",
                en=f"Beyond the variances there are only cross terms, whose mean is 0 for independent components; with all "
                f"components identical they are not, and it comes to {shared.mean:.1f}.",
            )
        },
        evidence="derived",
    )


@claim(
    "S2-05",
    says=Text(zh="一项 q_i·k_i 的方差是 1", en="A single product q_i·k_i has variance 1"),
    quote="因为 $q_i, k_i$ 独立且均值为 0：",
    where="I, L32-33",
    experiment="variance",
)
def _s2_05() -> Outcome:
    _, parts, _ = _moments(1)
    found = {kind: dots.scaled_variance(1, kind) for kind in dots.COMPONENTS}
    normal, uniform, signs = found.values()
    return Outcome.of(
        {Text(zh="推导", en="derivation"): equal(parts[0], 1)}
        # ±1 times ±1 is ±1: the square has no spread, so the estimate is exact up to the mean's own error.
        | {
            _NAMES[kind]: abs(x.mean - 1.0) < 1e-4 if x.error < 1e-4 else x.agrees(1.0, 0.06)
            for kind, x in found.items()
        },
        measured=Text(
            zh=f"正态 {normal:.3f}，均匀 {uniform:.3f}，±1 {signs:.3f}（各 {normal.n} 个样本）",
            en=f"normal {normal:.3f}, uniform {uniform:.3f}, ±1 {signs:.3f} ({normal.n} samples each)",
        ),
        because={
            "holds": Text(
                zh="均值为 0，方差就是平方的均值；两个因子独立，所以它是 E[q_i²]·E[k_i²] = 1，与分布的形状无关。",
                en="With mean 0, the variance is the mean square; the factors are independent, so it is E[q_i²]·E[k_i²] = 1, "
                "whatever the shape of the distribution.",
            )
        },
    )


@claim(
    "S2-06",
    says=Text(zh="Var(q·k) = d_k，随维度线性增长", en="Var(q·k) = d_k: it grows linearly with the dimension"),
    quote="关键结论：点积的方差随着维度 $d_k$ 线性增长！",
    where="I, L35-38",
    experiment="variance",
)
def _s2_06() -> Outcome:
    found = {d: dots.scaled_variance(d) for d in dots.DIMENSIONS}
    other = {kind: dots.scaled_variance(64, kind) for kind in dots.COMPONENTS[1:]}
    return Outcome.of(
        {f"d = {d}": x.agrees(1.0, 0.06) for d, x in found.items()}
        | {
            Text(zh=f"d = 64，{_NAMES[kind].zh}", en=f"d = 64, {_NAMES[kind].en}"): x.agrees(1.0, 0.06)
            for kind, x in other.items()
        },
        measured=Text(zh=f"方差/d：{by(found, '.3f')}", en=f"variance/d: {by(found, '.3f')}"),
        because={
            "holds": Text(
                zh=f"d 个方差为 1 的独立项相加；分量为均匀分布或 ±1 时，在 d = 64 也一样："
                f"{other['uniform']:.3f} 与 {other['±1']:.3f}。",
                en=f"d independent terms of variance 1 add up; uniform and ±1 components behave the same at d = 64: "
                f"{other['uniform']:.3f} and {other['±1']:.3f}.",
            )
        },
    )


@claim(
    "S2-14",
    says=Text(zh="除以 √d_k 后方差恒为 1，与 d_k 无关", en="After dividing by √d_k, the variance is 1 for any d_k"),
    quote="关键效果：缩放后的点积方差恒定为 1，与维度 $d_k$ 无关！",
    where="III, L82-85",
    experiment="variance",
)
def _s2_14() -> Outcome:
    found = {d: dots.scaled_variance(d) for d in dots.DIMENSIONS}
    return Outcome.of(
        {f"d = {d}": x.agrees(1.0, 0.06) for d, x in found.items()},
        measured=by(found, ".3f"),
        because={
            "holds": Text(
                zh="除以 √d 使方差除以 d；分量独立、均值为 0、方差为 1 时（文中的假设），它原来正是 d。",
                en="Dividing by √d divides the variance by d, which is what it was, given the text's assumptions: independent "
                "components of mean 0 and variance 1.",
            )
        },
    )


@claim(
    "S2-40",
    says=Text(
        zh="方差 d，标准差 √d，除以 √d 之后方差为 1",
        en="Variance d, so standard deviation √d, so variance 1 after dividing by √d",
    ),
    quote="归一化：除以标准差 $\\sqrt{d_k}$",
    where="VII, L174-177",
    experiment="variance",
)
def _s2_40() -> Outcome:
    sizes = (1, 2, 3, 4, 5)
    whole = {d: _moments(d)[2] for d in sizes}
    shown = ", ".join(f"d = {d}: {x}" for d, x in whole.items())
    return Outcome.of(
        {f"d = {d}": equal(x, d) and equal(x / d, 1) for d, x in whole.items()},
        measured=Text(zh=f"推导的方差 {shown}", en=f"derived variance {shown}"),
        because={
            "holds": Text(
                zh="除以 c 使方差除以 c²，而 c = √d。", en="Dividing by c divides the variance by c², and c = √d."
            )
        },
        evidence="derived",
    )


def _scaled_scores(d: int, n: int, sd: float, shift: float) -> Any:
    """q·k/√d of n pairs whose components are N(shift, sd²)."""
    q, k = shift + sd * generator("S2-41").standard_normal((2, n, d))
    return np.einsum("ij,ij->i", q, k) / math.sqrt(d)


@claim(
    "S2-41",
    says=Text(
        zh="缩放如同批归一化：均值已是 0，只需除以标准差",
        en="Scaling is like batch normalisation: the mean is already 0, so dividing by the standard deviation is enough",
    ),
    quote="这类似于批归一化（Batch Normalization）的思想",
    where="VII, L180-182",
    experiment="initialisation",
)
def _s2_41() -> Outcome:
    d, n = 64, 20_000
    settings = {"N(0, 1)": (1.0, 0.0), "N(0, 4)": (2.0, 0.0), "N(0.5, 1)": (1.0, 0.5)}
    found = {}
    for name, (sd, shift) in settings.items():
        scores = _scaled_scores(d, n, sd, shift)
        found[name] = estimate(scores), variance_of(scores)
    shown = ", ".join(f"{name}: {m:.2f} / {v:.2f}" for name, (m, v) in found.items())
    return Outcome.of(
        under={name: m.agrees(0.0, 0.3) and v.agrees(1.0, 0.1) for name, (m, v) in found.items()},
        measured=Text(
            zh=f"缩放后的均值 / 方差，{shown}（d = {d}，{n} 个样本）",
            en=f"scaled mean / variance, {shown} (d = {d}, {n} samples)",
        ),
        because={
            "only-if": Text(
                zh="批归一化测出均值和方差再予以消除；√d 是常数，觉察不到分量本身的变大或偏移。",
                en="Batch normalisation measures the mean and variance and removes them; √d is a constant and cannot see that "
                "the components have grown or shifted.",
            )
        },
        only_if=Text(zh="q 和 k 的分量均值为 0、方差为 1", en="the components of q and k have mean 0 and variance 1"),
    )
