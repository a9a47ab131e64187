"""Text 002: is a dot product normal, and how far does it reach? Exact, from the distribution of q's length."""

from __future__ import annotations

import math

import numpy as np

from softscope._text import Text
from softscope.experiments.ledger import Estimate, Outcome, claim, half_unit, share
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts.figures import by

_EXACT = 1e-6  # what the integration over q's length may err
_CLOSE = 0.01  # distribution functions that differ by less look alike in any histogram


def _shape(d: int, variance: float, spread: str, what: Text) -> Outcome:
    """Whether q·k (or its scaled version) is N(0, variance) at this d."""
    distance, excess = dots.distance_from_normal(d), dots.excess_kurtosis(d)
    found = dots.scaled_variance(d)
    return Outcome.of(
        {
            Text(zh="方差", en="variance"): found.agrees(1.0, 0.06),
            Text(zh="分布函数就是正态的", en="the distribution function is the normal one"): distance < _EXACT,
            Text(zh="尾部与正态一样重", en="tails as heavy as the normal's"): abs(excess) < _EXACT,
        },
        measured=Text(
            zh=f"分量为正态时：方差 {found.mean * variance:.2f}；与 {spread} 的分布函数最多相差 {distance:.4f}；超额峰度 {excess:.3f}",
            en=f"normal components: variance {found.mean * variance:.2f}; distribution function up to {distance:.4f} "
            f"from that of {spread}; excess kurtosis {excess:.3f}",
        ),
        because={
            "fails": Text(
                zh=f"d 项之和只是趋近正态分布：分量为正态时尾部略重（超额峰度 6/d = {excess:.3f}，正态的是 0）；分量为 ±1 时，"
                f"点积只取偶数，根本不连续。",
                en=f"A sum of d terms only approaches a normal distribution: with normal components its tails are slightly heavier "
                f"(excess kurtosis 6/d = {excess:.3f} instead of 0), and with components ±1 the dot product takes only even values.",
            )
        },
        instead=Text(
            zh=f"d_k = {d} 时，{what.zh}近似服从 {spread}：分布函数最多相差 {distance:.4f}",
            en=f"At d_k = {d}, {what.en} approximately follows {spread}: their distribution functions differ by at most {distance:.4f}",
        ),
        evidence="derived",
    )


@claim(
    "S2-07",
    says=Text(zh="d_k = 64 时点积服从 N(0, 64)", en="At d_k = 64, a dot product follows N(0, 64)"),
    quote="点积结果服从 $\\mathcal{N}(0, 64)$ 分布",
    where="II, L45",
    experiment="variance",
)
def _s2_07() -> Outcome:
    return _shape(64, 64.0, "N(0, 64)", Text(zh="点积", en="a dot product"))


@claim(
    "S2-15",
    says=Text(zh="d_k = 64 时缩放后的点积服从 N(0, 1)", en="At d_k = 64, a scaled dot product follows N(0, 1)"),
    quote="缩放后点积服从 $\\mathcal{N}(0, 1)$",
    where="III, L88",
    experiment="variance",
)
def _s2_15() -> Outcome:
    return _shape(64, 1.0, "N(0, 1)", Text(zh="缩放后的点积", en="a scaled dot product"))


def _three_sds(stated: str, divisor: float) -> Outcome:
    """Whether ±stated is 3σ of q·k/divisor at d = 64, and roughly its range."""
    variance = dots.scaled_variance(64)
    size = 3.0 * math.sqrt(64.0) / divisor
    root = math.sqrt(variance.mean)
    reach = Estimate(size * root, 0.5 * size * variance.error / root, variance.n)
    outside = share(np.abs(dots.sampled(64)) / divisor > float(stated))
    sd = "√64" if divisor == 1.0 else f"√64/{divisor:g}"
    exact, normal = dots.outside(64, 3.0), math.erfc(3.0 / math.sqrt(2.0))
    return Outcome.of(
        {
            "3σ": reach.agrees(float(stated), half_unit(stated)),
            Text(zh="不到 1% 落在外面", en="less than 1% lie outside"): outside.below(0.01),
        },
        measured=Text(
            zh=f"3σ = {reach:.2f}；区间外 {100 * outside.mean:.2f}%（{outside.n} 个样本；推导 {100 * exact:.2f}%，正态 {100 * normal:.2f}%）",
            en=f"3σ = {reach:.2f}; {100 * outside.mean:.2f}% lie outside ({outside.n} samples; derived {100 * exact:.2f}%, "
            f"normal {100 * normal:.2f}%)",
        ),
        because={
            "holds": Text(
                zh=f"σ = {sd}，3σ 就是 {stated}；约每 {1 / exact:.0f} 个点积才有 1 个落在外面，所以是“大约”，不是界限。",
                en=f"σ = {sd}, so 3σ is {stated}; about 1 dot product in {1 / exact:.0f} lies outside, so it is a rough "
                f"range and not a bound.",
            )
        },
    )


@claim(
    "S2-08",
    says=Text(
        zh="d_k = 64 时点积大致落在 [−24, 24]，即 3σ",
        en="At d_k = 64, dot products lie roughly in [−24, 24], that is, within 3σ",
    ),
    quote="点积值可能的范围：[-24, 24]（约 3σ）",
    where="II, L49",
    experiment="variance",
)
def _s2_08() -> Outcome:
    return _three_sds("24", 1.0)


@claim(
    "S2-16",
    says=Text(zh="缩放后大致落在 [−3, 3]，即 3σ", en="Scaled, they lie roughly in [−3, 3], that is, within 3σ"),
    quote="点积值范围：[-3, 3]（约 3σ）",
    where="III, L91",
    experiment="variance",
)
def _s2_16() -> Outcome:
    return _three_sds("3", 8.0)


def _close_from() -> int:
    """The smallest d at which q·k/√d is as good as normal in a histogram; the distance falls with d."""
    low, high = 1, 1024
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if dots.distance_from_normal(middle) < _CLOSE else (middle + 1, high)
    return low


@claim(
    "S2-61",
    says=Text(zh="(q·k)/√d_k 服从 N(0, 1)", en="(q·k)/√d_k follows N(0, 1)"),
    quote="将点积归一化到标准正态分布",
    where="Essence, L260-262",
    experiment="variance",
)
def _s2_61() -> Outcome:
    distances = {d: dots.distance_from_normal(d) for d in (1, 4, 16, 64, 256, 1024)}
    flip = _close_from()
    return Outcome.of(
        {f"d = {d}": x < _EXACT for d, x in distances.items()},
        measured=Text(
            zh=f"分量为正态时，与 N(0, 1) 的分布函数最大差：{by(distances, '.4f')}；从 d = {flip} 起小于 {_CLOSE}",
            en=f"normal components, largest difference from the distribution function of N(0, 1): {by(distances, '.4f')}; "
            f"below {_CLOSE} from d = {flip}",
        ),
        because={
            "fails": Text(
                zh=f"均值和方差总是 0 和 1，但除以 √d 不改变分布的形状：d = 1 时它是两个正态变量之积，相差 {distances[1]:.2f}；差距按 1/d 缩小，"
                f"从不为 0。",
                en=f"The mean and variance are always 0 and 1, but dividing by √d does not change the shape: at d = 1 it is a product of "
                f"two normals, {distances[1]:.2f} away; the difference shrinks like 1/d and is never 0.",
            )
        },
        instead=Text(
            zh=f"(q·k)/√d_k 的均值为 0、方差为 1，d 越大越接近 N(0, 1)：从 d = {flip} 起相差不到 {_CLOSE}",
            en=f"(q·k)/√d_k has mean 0 and variance 1 and approaches N(0, 1) as d grows: within {_CLOSE} from d = {flip}",
        ),
        evidence="derived",
    )
