"""Text 003, chapter 4.5: why the scores are divided by √d."""

from __future__ import annotations

import itertools
import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, estimate
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts import random_attention as drawn
from softscope.experiments.ledger.texts.figures import by


@claim(
    "S3-41",
    says=Text(
        zh="d 大时 QKᵀ 的数值也大：方差随 d 增长",
        en="For large d, the values of QKᵀ are large: their variance grows with d",
    ),
    where="4.5, L277-281",
    experiment="variance",
)
def _s3_41() -> Outcome:
    sizes = {d: float(np.abs(dots.sampled(d)).mean()) for d in (1, 16, 64, 256)}
    variances = {d: dots.scaled_variance(d) for d in sizes}
    pairs = list(itertools.pairwise(sizes))
    return Outcome.of(
        {Text(zh=f"大小，{a} → {b}", en=f"size, {a} → {b}"): sizes[b] > 1.5 * sizes[a] for a, b in pairs}
        | {Text(zh=f"方差，d = {d}", en=f"variance, d = {d}"): x.agrees(1.0, 0.06) for d, x in variances.items()},
        measured=Text(zh=f"平均 |q·k|：{by(sizes, '.2f')}", en=f"mean |q·k|: {by(sizes, '.2f')}"),
        because={
            "holds": Text(
                zh="方差是 d，所以典型的大小按 √d 增长。", en="The variance is d, so the typical size grows like √d."
            )
        },
    )


@claim(
    "S3-42",
    says=Text(zh="E[(q·k)²] = d × 方差", en="E[(q·k)²] = d × variance"),
    where="4.5, L283",
    experiment="variance",
)
def _s3_42() -> Outcome:
    d = 64
    second = estimate(dots.sampled(d) ** 2)
    sd = 2.0
    grown = estimate((sd * sd * dots.sampled(d)) ** 2)  # both q and k with standard deviation 2
    return Outcome.of(
        under={
            Text(zh="分量方差 1", en="components of variance 1"): second.agrees(d * 1.0, 0.06 * d),
            Text(
                zh="分量方差 4，“方差”指 q_i·k_i 的", en="components of variance 4, “variance” meaning that of q_i·k_i"
            ): grown.agrees(d * sd**4, 0.06 * d * sd**4),
            Text(
                zh="分量方差 4，“方差”指分量的", en="components of variance 4, “variance” meaning that of a component"
            ): grown.agrees(d * sd**2, 0.06 * d * sd**2),
        },
        measured=Text(
            zh=f"d = {d}：分量方差 1 时 {second:.1f}，方差 4 时 {grown:.0f}（{second.n} 个样本）",
            en=f"d = {d}: {second:.1f} for components of variance 1, {grown:.0f} for variance 4 ({second.n} samples)",
        ),
        because={
            "only-if": Text(
                zh=f"一项 q_i·k_i 的方差是两个方差之积：4·4 = {sd**4:g}，不是 {sd**2:g}。",
                en=f"The variance of one q_i·k_i is the product of the two variances: 4·4 = {sd**4:g}, not {sd**2:g}.",
            )
        },
        only_if=Text(
            zh="“方差”指 q_i·k_i 的方差，或者分量方差为 1",
            en="“variance” means that of q_i·k_i, or the components have variance 1",
        ),
    )


@claim(
    "S3-43",
    says=Text(zh="d = 64 的方差是 d = 1 的 64 倍", en="The variance at d = 64 is 64 times that at d = 1"),
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
        because={"holds": Text(zh="方差是 d。", en="The variance is d.")},
    )


@claim(
    "S3-44",
    says=Text(zh="因此 d = 64 时 softmax 比 d = 1 时更极端", en="So softmax is more extreme at d = 64 than at d = 1"),
    where="4.5, L285-286",
    experiment="entropy",
)
def _s3_44() -> Outcome:
    one, many = drawn.plain(1), drawn.plain(64)
    return Outcome.of(
        {
            Text(zh="最大权重", en="largest weight"): many.peak.above(one.peak.mean),
            Text(zh="熵", en="entropy"): many.entropy.below(one.entropy.mean),
        },
        measured=Text(
            zh=f"10 个键，不缩放：最大权重 {one.peak:.3f} → {many.peak:.3f}，熵 {one.entropy:.2f} → {many.entropy:.2f} nat",
            en=f"10 keys, unscaled: largest weight {one.peak:.3f} → {many.peak:.3f}, entropy {one.entropy:.2f} → {many.entropy:.2f} nats",
        ),
        because={
            "holds": Text(
                zh="分数越分散，最大的分数领先越多。", en="The more the scores spread, the further the largest leads."
            )
        },
    )


@claim(
    "S3-45",
    says=Text(zh="除以 √d 使方差回到约 1", en="Dividing by √d brings the variance back to about 1"),
    where="4.5, L288-289",
    experiment="variance",
)
def _s3_45() -> Outcome:
    found = {d: dots.scaled_variance(d) for d in dots.DIMENSIONS}
    return Outcome.of(
        {f"d = {d}": x.agrees(1.0, 0.06) for d, x in found.items()},
        measured=by(found, ".3f"),
        because={"holds": Text(zh="除以 √d 使方差除以 d。", en="Dividing by √d divides the variance by d.")},
    )
