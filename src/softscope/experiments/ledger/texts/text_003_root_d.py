"""Text 003, chapter 4.5: why the scores are divided by √d."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate, generator, variance_of
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts import scores
from softscope.experiments.ledger.texts.figures import by

# What the components of q and k are like, and their variance.
_SETTINGS = {
    "as assumed": (Text(zh="独立，均值 0，方差 1", en="independent, mean 0, variance 1"), 1.0),
    "wide": (Text(zh="方差 4", en="variance 4"), 4.0),
    "shifted": (Text(zh="均值 1", en="mean 1"), 1.0),
    "alike": (Text(zh="k 等于 q", en="k equal to q"), 1.0),
}
_ASSUMED = Text(
    zh="q 和 k 的分量相互独立、均值为 0、方差为 1",
    en="the components of q and k are independent, with mean 0 and variance 1",
)


@functools.cache
def _sampled(setting: str, d: int) -> Any:
    """20 000 dot products of vectors whose components are as the setting says."""
    q, k = generator(f"S3 {setting} {d}").standard_normal((2, 20_000, d))
    if setting == "wide":
        q, k = 2.0 * q, 2.0 * k
    elif setting == "shifted":
        q, k = q + 1.0, k + 1.0
    elif setting == "alike":
        k = q
    return np.einsum("nd,nd->n", q, k)


@claim(
    "S3-41",
    says=Text(
        zh="d 大时 QKᵀ 的数值也大：点积的方差随维度增加",
        en="When d is large, the values of QKᵀ become large: the variance of the dot product increases with the dimension",
    ),
    quote="When d is large, QK^T values also become large.",
    where="4.5, L277-281",
    experiment="variance",
)
def _s3_41() -> Outcome:
    sizes = {d: float(np.abs(dots.sampled(d)).mean()) for d in (1, 16, 64, 256)}
    variances = {d: dots.scaled_variance(d) for d in sizes}
    pairs = list(itertools.pairwise(sizes))
    return Outcome.of(
        {Text(zh=f"大小，{a} → {b}", en=f"size, {a} → {b}"): sizes[b] > 1.5 * sizes[a] for a, b in pairs}
        | {Text(zh=f"方差，d = {d}", en=f"variance, d = {d}"): x.agrees(1.0, 0.1) for d, x in variances.items()},
        measured=Text(
            zh=f"平均 |q·k|：{by(sizes, '.2f')}；方差/d：{by(variances, '.2f')}",
            en=f"mean |q·k|: {by(sizes, '.2f')}; variance/d: {by(variances, '.2f')}",
        ),
        because={
            "holds": Text(
                zh="q·k 是 d 个独立项之和，每多一个分量就多一份同样大的方差，所以方差与 d 成正比，典型的大小按 √d 增长。",
                en="q·k is a sum of d independent terms, and each further component adds the same variance again: the variance is "
                "proportional to d, and the typical size grows like √d.",
            )
        },
    )


@claim(
    "S3-42",
    says=Text(zh="E[(q·k)²] = d × 方差", en="E[(q·k)²] = d × variance"),
    quote="E[(q·k)^2] = d × (方差 | variance)",
    where="4.5, L283",
    experiment="variance",
)
def _s3_42() -> Outcome:
    d = 64
    found = {name: estimate(_sampled(name, d) ** 2) for name in _SETTINGS}
    cases, shown = {}, {}
    for name, (label, variance) in _SETTINGS.items():
        cases[label] = found[name].agrees(d * variance, 0.1 * d * variance)
        shown[label] = f"{found[name]:.0f} ({d * variance:.0f})"
    return Outcome.of(
        under=cases,
        measured=Text(
            zh=f"d = {d}，E[(q·k)²]（括号里是 d × 分量的方差）：" + "；".join(f"{x.zh}：{y}" for x, y in shown.items()),
            en=f"d = {d}, E[(q·k)²] (in brackets: d × variance of a component): "
            + "; ".join(f"{x.en}: {y}" for x, y in shown.items()),
        ),
        because={
            "only-if": Text(
                zh="每一项 q_i·k_i 的方差是两个方差之积，4·4 = 16 而不是 4；两者只在方差为 1 时相同。均值不为 0 或 q 与 k 相关时，"
                "E[(q·k)²] 里还有均值的平方，按 d² 增长。",
                en="The variance of one term q_i·k_i is the product of the two variances, 4·4 = 16 and not 4; only at 1 are they the "
                "same. With another mean, or q related to k, E[(q·k)²] also holds the square of the mean, which grows like d².",
            )
        },
        only_if=_ASSUMED,
    )


@claim(
    "S3-43",
    says=Text(zh="d = 64 的方差是 d = 1 的 64 倍", en="The variance at d = 64 is 64 times that at d = 1"),
    quote="When d=64, variance is 64× that of d=1",
    where="4.5, L285-286",
    experiment="variance",
)
def _s3_43() -> Outcome:
    one, many = dots.scaled_variance(1), dots.scaled_variance(64)
    ratio = 64.0 * many.mean / one.mean
    found = Estimate(ratio, ratio * math.hypot(one.error / one.mean, many.error / many.mean), many.n)
    return Outcome.of(
        {"64 / 1": found.agrees(64.0, 6.4)},
        measured=Text(zh=f"{found:.1f} 倍（各 {found.n} 个样本）", en=f"{found:.1f} times ({found.n} samples each)"),
        because={
            "holds": Text(
                zh="独立项的方差相加：64 项之和的方差是一项的 64 倍。",
                en="Variances of independent terms add up: a sum of 64 terms has 64 times the variance of one.",
            )
        },
    )


@claim(
    "S3-44",
    says=Text(
        zh="因此 d = 64 时 softmax 比 d = 1 时更容易极端化",
        en="So softmax becomes more extreme at d = 64 than at d = 1",
    ),
    quote="softmax becomes more extreme",
    where="4.5, L285-286",
    experiment="entropy",
)
def _s3_44() -> Outcome:
    one, many = drawn.plain(1), drawn.plain(64)
    keys = (2, 10, 100)
    entropies = {n: [scores.entropies(d, 1.0, n, n=1000) for d in (1, 64)] for n in keys}
    shown = ", ".join(f"n = {n}: {a:.2f} → {b:.2f}" for n, (a, b) in entropies.items())
    return Outcome.of(
        {Text(zh="最大权重，10 个键", en="largest weight, 10 keys"): many.peak.above(one.peak.mean)}
        | {Text(zh=f"熵，{n} 个键", en=f"entropy, {n} keys"): b.below(a.mean) for n, (a, b) in entropies.items()},
        measured=Text(
            zh=f"不缩放，d = 1 → 64。10 个键的最大权重 {one.peak:.3f} → {many.peak:.3f}；n 个键的熵（nat）{shown}",
            en=f"unscaled, d = 1 → 64. Largest weight with 10 keys {one.peak:.3f} → {many.peak:.3f}; entropy with n keys in nats {shown}",
        ),
        because={
            "holds": Text(
                zh="分数的标准差是 √d，从 1 变成 8：分数越分散，最大的领先越多，而权重之比是 e 的领先次方。",
                en="The scores' standard deviation is √d and goes from 1 to 8: the more they spread, the further the largest leads, and "
                "the ratio of weights is e to that lead.",
            )
        },
    )


@claim(
    "S3-45",
    says=Text(zh="除以 √d 将方差缩放回约 1", en="Dividing by √d scales the variance back to about 1"),
    quote="Divide by √d to scale variance back to ~1.",
    where="4.5, L288-289",
    experiment="variance",
)
def _s3_45() -> Outcome:
    sizes = (16, 64)
    found = {
        label: {d: variance_of(_sampled(name, d) / math.sqrt(d)) for d in sizes}
        for name, (label, _) in _SETTINGS.items()
    }
    return Outcome.of(
        under={label: all(x.agrees(1.0, 0.1) for x in row.values()) for label, row in found.items()},
        measured=Text(
            zh="q·k/√d 的方差。" + "；".join(f"{x.zh}：{by(row, '.2f')}" for x, row in found.items()),
            en="variance of q·k/√d. " + "; ".join(f"{x.en}: {by(row, '.2f')}" for x, row in found.items()),
        ),
        because={
            "only-if": Text(
                zh="除以 √d 使方差除以 d，消去的只是 d 的影响：分量的方差是 1 时正好剩下 1，是 4 时剩下 4·4 = 16。与 d 无关倒是总成立的。",
                en="Dividing by √d divides the variance by d, and so removes the effect of d only: components of variance 1 leave just "
                "1, but 4 leaves 4·4 = 16. What remains does not depend on d in any of these cases.",
            )
        },
        only_if=_ASSUMED,
    )
