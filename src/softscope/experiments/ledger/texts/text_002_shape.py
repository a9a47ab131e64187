"""Text 002: is a dot product normal, and how far does it reach? Exact, from the distribution of q's length."""

from __future__ import annotations

import math

from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, near
from softscope.experiments.ledger.texts import dot_products as dots
from softscope.experiments.ledger.texts.figures import by

_CLOSE = 0.01  # distribution functions that differ by less look alike in any histogram


def _shape(d: int, variance: float, spread: str) -> Outcome:
    """Whether q·k (or its scaled version) is N(0, variance) at this d."""
    distance, excess = dots.distance_from_normal(d), dots.excess_kurtosis(d)
    found = dots.scaled_variance(d)
    return Outcome.of(
        under={
            Text(zh="方差", en="variance"): found.agrees(1.0, 0.06),
            Text(zh="近似正态", en="close to normal"): distance < _CLOSE,
            Text(zh="恰为正态", en="exactly normal"): excess == 0.0,
        },
        measured=Text(
            zh=f"方差 {found.mean * variance:.2f}；与 {spread} 的分布函数最多相差 {distance:.4f}；超额峰度 {excess:.3f}",
            en=f"variance {found.mean * variance:.2f}; distribution function within {distance:.4f} "
            f"of that of {spread}; excess kurtosis {excess:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"d 项之和只是趋近正态分布：尾部略重（正态的超额峰度为 0，这里是 6/d = {excess:.3f}）。",
                en=f"A sum of d terms only approaches a normal distribution: its tails are slightly heavier "
                f"(excess kurtosis 6/d = {excess:.3f} instead of 0).",
            )
        },
        only_if=Text(zh="“服从”指“近似服从”", en="“follows” means “approximately follows”"),
    )


@claim(
    "S2-07",
    says=Text(zh="d_k = 64 时点积服从 N(0, 64)", en="At d_k = 64, a dot product follows N(0, 64)"),
    where="II, L45",
    experiment="variance",
)
def _s2_07() -> Outcome:
    return _shape(64, 64.0, "N(0, 64)")


@claim(
    "S2-15",
    says=Text(zh="d_k = 64 时缩放后的分数服从 N(0, 1)", en="At d_k = 64, a scaled score follows N(0, 1)"),
    where="III, L88",
    experiment="variance",
)
def _s2_15() -> Outcome:
    return _shape(64, 1.0, "N(0, 1)")


def _three_sds(stated: str, sd: float) -> Outcome:
    beyond, normal = dots.outside(64, 3.0), math.erfc(3.0 / math.sqrt(2.0))
    return Outcome.of(
        {"3σ": near(3.0 * sd, stated), Text(zh="几乎全部在内", en="nearly all inside"): beyond < 0.005},
        measured=Text(
            zh=f"3σ = {3.0 * sd:g}；区间外 {100 * beyond:.2f}%（正态 {100 * normal:.2f}%）",
            en=f"3σ = {3.0 * sd:g}; {100 * beyond:.2f}% lie outside (normal: {100 * normal:.2f}%)",
        ),
        because={
            "holds": Text(
                zh=f"约每 {1 / beyond:.0f} 个分数才有 1 个落在区间外。",
                en=f"About 1 score in {1 / beyond:.0f} lies outside.",
            )
        },
    )


@claim(
    "S2-08",
    says=Text(
        zh="d_k = 64 时点积大致落在 [−24, 24]，即 3σ",
        en="At d_k = 64, dot products lie roughly in [−24, 24], that is, within 3σ",
    ),
    where="II, L49",
    experiment="variance",
)
def _s2_08() -> Outcome:
    return _three_sds("24", math.sqrt(64.0))


@claim(
    "S2-16",
    says=Text(zh="缩放后大致落在 [−3, 3]，即 3σ", en="Scaled, they lie roughly in [−3, 3], that is, within 3σ"),
    where="III, L91",
    experiment="variance",
)
def _s2_16() -> Outcome:
    return _three_sds("3", 1.0)


@claim(
    "S2-61",
    says=Text(zh="(q·k)/√d_k 服从 N(0, 1)", en="(q·k)/√d_k follows N(0, 1)"),
    where="Essence, L260",
    experiment="variance",
)
def _s2_61() -> Outcome:
    distances = {d: dots.distance_from_normal(d) for d in (1, 4, 16, 64, 256, 1024)}
    return Outcome.of(
        under={f"d = {d}": x < _CLOSE for d, x in distances.items()},
        measured=Text(
            zh=f"与 N(0, 1) 的分布函数最大差：{by(distances, '.4f')}",
            en=f"largest difference from the distribution function of N(0, 1): {by(distances, '.4f')}",
        ),
        because={
            "only-if": Text(
                zh=f"差距按 1/d 缩小；d = 1 时它是两个正态变量之积，相差 {distances[1]:.2f}。",
                en=f"The difference shrinks like 1/d; at d = 1 the score is a product of two normals and differs by {distances[1]:.2f}.",
            )
        },
        only_if=Text(
            zh=f"d 至少是 16 左右，并且容许 {_CLOSE} 以内的差；严格来说它从不服从正态分布",
            en=f"d is at least about 16 and differences below {_CLOSE} are allowed; it is never exactly normal",
        ),
    )
