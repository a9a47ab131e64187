"""Text 002, parts II and III: the five scores at d_k = 64, plain and scaled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, equal, generator, near, off_by, symbols
from softscope.experiments.ledger.texts.figures import listed

_PLAIN = np.array([-24.0, -10.0, 0.0, 10.0, 24.0])
_SCALED = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])


def _power(exponent: float, stated: str) -> Outcome:
    value = math.exp(exponent)
    return Outcome.of(
        {f"e^{exponent:g}": near(value, stated)},
        measured=f"{value:.4g}",
        because={
            "holds": Text(
                zh=f"按文中的位数四舍五入，正是 {stated}。", en=f"Rounded to the printed digits, it is {stated}."
            )
        },
    )


@claim("S2-09", says=Text(zh="e^24 约为 2.6×10¹⁰", en="e^24 is about 2.6·10¹⁰"), where="II, L56", experiment="extremes")
def _s2_09() -> Outcome:
    return _power(24.0, "2.6e10")


@claim(
    "S2-10", says=Text(zh="e^−24 约为 3.8×10⁻¹¹", en="e^−24 is about 3.8·10⁻¹¹"), where="II, L57", experiment="extremes"
)
def _s2_10() -> Outcome:
    return _power(-24.0, "3.8e-11")


@claim("S2-18", says=Text(zh="e^3 约为 20.1", en="e^3 is about 20.1"), where="III, L96", experiment="extremes")
def _s2_18() -> Outcome:
    return _power(3.0, "20.1")


@claim("S2-19", says=Text(zh="e^−3 约为 0.05", en="e^−3 is about 0.05"), where="III, L97", experiment="extremes")
def _s2_19() -> Outcome:
    return _power(-3.0, "0.05")


@claim(
    "S2-11",
    says=Text(
        zh="softmax([−24, −10, 0, 10, 24]) 几乎是 [0, 0, 0, 0, 1]",
        en="softmax([−24, −10, 0, 10, 24]) is almost [0, 0, 0, 0, 1]",
    ),
    where="II, L59-63",
    experiment="extremes",
)
def _s2_11() -> Outcome:
    p = ss.softmax(_PLAIN)
    return Outcome.of(
        {"[0, 0, 0, 0, 1]": near(p, ["0", "0", "0", "0", "1"])},
        measured=listed(p, ".2g"),
        because={
            "holds": Text(
                zh=f"最大的分数领先 14，其余各项的权重合计只有 {1.0 - p[4]:.1e}。",
                en=f"The largest score leads by 14; all the others together get {1.0 - p[4]:.1e}.",
            )
        },
    )


@claim(
    "S2-12",
    says=Text(
        zh="softmax 的对角导数是 s_i(1 − s_i)",
        en="The derivative of a softmax entry with respect to its own input is s_i(1 − s_i)",
    ),
    where="II, L66-68",
    experiment="saturation",
)
def _s2_12() -> Outcome:
    import torch

    z, s = symbols(4)
    derived = all(equal(s[i].diff(z[i]), s[i] * (1 - s[i])) for i in range(4))
    x = torch.from_numpy(generator("S2-12").standard_normal(10))
    differentiate: Any = torch.autograd.functional.jacobian
    jacobian = np.asarray(differentiate(lambda y: torch.softmax(y, -1), x))
    weights = ss.softmax(np.asarray(x))
    off = off_by(np.diag(jacobian), weights * (1.0 - weights))
    return Outcome.of(
        {
            Text(zh="推导，n = 4", en="derivation, n = 4"): derived,
            Text(zh="自动求导，n = 10", en="autograd, n = 10"): off < 1e-14,
        },
        measured=Text(zh=f"与自动求导最多相差 {off:.1g}", en=f"differs from autograd by at most {off:.1g}"),
        because={"holds": Text(zh="这是雅可比矩阵的对角线。", en="This is the diagonal of the Jacobian.")},
    )


@claim(
    "S2-13",
    says=Text(
        zh="s 接近 0 或 1 时 s(1 − s) 接近 0，梯度消失",
        en="When s is near 0 or 1, s(1 − s) is near 0 and the gradient vanishes",
    ),
    where="II, L70-72",
    experiment="saturation",
)
def _s2_13() -> Outcome:
    p = ss.softmax(_PLAIN)
    slopes = p * (1.0 - p)
    whole = float(np.linalg.norm(ss.jacobian(p)))
    limit = max(s * (1.0 - s) for s in (1e-9, 1.0 - 1e-9))
    return Outcome.of(
        {
            "s → 0, s → 1": limit < 1e-8,
            Text(zh="例子中的五项", en="the example's five entries"): bool((slopes < 1e-6).all()),
            Text(zh="整个雅可比矩阵", en="the whole Jacobian"): whole < 1e-5,
        },
        measured=Text(
            zh=f"s(1−s)：{listed(slopes, '.1e')}；‖J‖ = {whole:.1e}",
            en=f"s(1−s): {listed(slopes, '.1e')}; ‖J‖ = {whole:.1e}",
        ),
        because={
            "holds": Text(
                zh="非对角项 −s_i·s_j 同样小，所以几乎没有梯度能通过这个 softmax。",
                en="The off-diagonal entries −s_i·s_j are just as small, so hardly any gradient gets through this softmax.",
            )
        },
    )


@claim(
    "S2-17",
    says=Text(
        zh="[−24, −10, 0, 10, 24] 缩放后是 [−3, −1, 0, 1, 3]",
        en="[−24, −10, 0, 10, 24] becomes [−3, −1, 0, 1, 3] when scaled",
    ),
    where="III, L92",
    experiment="extremes",
)
def _s2_17() -> Outcome:
    scaled = _PLAIN / math.sqrt(64.0)
    same = int((scaled == _SCALED).sum())
    return Outcome.of(
        {"[−24, −10, 0, 10, 24] / √64": bool((scaled == _SCALED).all())},
        measured=listed(scaled, "g"),
        because={
            "fails": Text(
                zh=f"5 项中 {same} 项相符，但 ±10/8 是 ±{scaled[3]:g}，不是 ±{_SCALED[3]:g}。",
                en=f"{same} of 5 entries agree, but ±10/8 is ±{scaled[3]:g}, not ±{_SCALED[3]:g}.",
            )
        },
    )


@claim(
    "S2-20",
    says=Text(
        zh="[−3, −1, 0, 1, 3] 的 softmax 是 [0.012, 0.089, 0.243, 0.661, 0.995]",
        en="The softmax of [−3, −1, 0, 1, 3] is [0.012, 0.089, 0.243, 0.661, 0.995]",
    ),
    where="III, L99-101",
    experiment="extremes",
)
def _s2_20() -> Outcome:
    stated = ["0.012", "0.089", "0.243", "0.661", "0.995"]
    p = ss.softmax(_SCALED)
    total = sum(map(float, stated))
    return Outcome.of(
        {"[−3, −1, 0, 1, 3]": near(p, stated)},
        measured=listed(p, ".3f"),
        because={
            "fails": Text(
                zh=f"文中 5 个数之和是 {total:.3f}，而任何 softmax 的各项之和都是 1。",
                en=f"The 5 numbers in the text add up to {total:.3f}; any softmax adds up to 1.",
            )
        },
    )


@claim(
    "S2-21",
    says=Text(zh="缩放后的分布更平滑", en="The scaled distribution is smoother"),
    where="III, L101",
    experiment="entropy",
)
def _s2_21() -> Outcome:
    before, after, exact = (ss.partition(x) for x in (_PLAIN, _SCALED, _PLAIN / 8.0))
    return Outcome.of(
        {
            Text(zh="文中的五个数", en="the text's five numbers"): bool(after.entropy > before.entropy),
            Text(zh="除以 8", en="divided by 8"): bool(exact.entropy > before.entropy),
        },
        measured=Text(
            zh=f"熵 {before.entropy:.1e} → {after.entropy:.2f} nat（均匀分布 {math.log(5):.2f}）",
            en=f"entropy {before.entropy:.1e} → {after.entropy:.2f} nats (uniform: {math.log(5):.2f})",
        ),
        because={
            "holds": Text(
                zh=f"最大权重从 1 − {1.0 - ss.softmax(_PLAIN)[4]:.1g} 降到 {after.peak:.2f}：更平滑，但离均匀分布还很远。",
                en=f"The largest weight falls from 1 − {1.0 - ss.softmax(_PLAIN)[4]:.1g} to {after.peak:.2f}: smoother, but still far from uniform.",
            )
        },
    )


@claim(
    "S2-22",
    says=Text(zh="缩放后每个 s(1 − s) 都大于 0.01", en="After scaling, every s(1 − s) is above 0.01"),
    where="III, L104-105",
    experiment="saturation",
)
def _s2_22() -> Outcome:
    p = ss.softmax(_SCALED)
    slopes = p * (1.0 - p)
    printed = 0.995 * (1.0 - 0.995)
    return Outcome.of(
        {Text(zh="最小的一项", en="the smallest one"): bool(slopes.min() > 0.01)},
        measured=listed(slopes, ".4f"),
        because={
            "fails": Text(
                zh=f"5 项中 {int((slopes > 0.01).sum())} 项大于 0.01，最小的是 {slopes.min():.4f}；用文中的 0.995 来算也只有 {printed:.4f}。",
                en=f"{int((slopes > 0.01).sum())} of 5 are above 0.01, and the smallest is {slopes.min():.4f}; "
                f"the text's own 0.995 would give only {printed:.4f}.",
            )
        },
    )
