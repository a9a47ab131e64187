"""Text 002, parts II and III: the five scores at d_k = 64, plain and scaled."""

from __future__ import annotations

import itertools
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
    value, tens = math.exp(exponent), exponent / math.log(10.0)
    return Outcome.of(
        {f"e^{exponent:g}": near(value, stated)},
        measured=f"{value:.4g}",
        because={
            "holds": Text(
                zh=f"{exponent:g}/ln 10 = {tens:.4f}，所以 e^{exponent:g} = 10^{tens:.4f}，取文中的位数就是 {stated}。",
                en=f"{exponent:g}/ln 10 = {tens:.4f}, so e^{exponent:g} = 10^{tens:.4f}, which is {stated} to the digits given.",
            )
        },
    )


@claim(
    "S2-09",
    says=Text(zh="e^24 约为 2.6×10¹⁰", en="e^24 is about 2.6·10¹⁰"),
    quote="$e^{24} \\approx 2.6 \\times 10^{10}$",
    where="II, L56",
    experiment="lanes",
)
def _s2_09() -> Outcome:
    return _power(24.0, "2.6e10")


@claim(
    "S2-10",
    says=Text(zh="e^−24 约为 3.8×10⁻¹¹", en="e^−24 is about 3.8·10⁻¹¹"),
    quote="$e^{-24} \\approx 3.8 \\times 10^{-11}$",
    where="II, L57",
    experiment="lanes",
)
def _s2_10() -> Outcome:
    return _power(-24.0, "3.8e-11")


@claim(
    "S2-18",
    says=Text(zh="e^3 约为 20.1", en="e^3 is about 20.1"),
    quote="$e^3 \\approx 20.1$",
    where="III, L96",
    experiment="lanes",
)
def _s2_18() -> Outcome:
    return _power(3.0, "20.1")


@claim(
    "S2-19",
    says=Text(zh="e^−3 约为 0.05", en="e^−3 is about 0.05"),
    quote="$e^{-3} \\approx 0.05$",
    where="III, L97",
    experiment="lanes",
)
def _s2_19() -> Outcome:
    return _power(-3.0, "0.05")


@claim(
    "S2-11",
    says=Text(
        zh="softmax([−24, −10, 0, 10, 24]) 几乎是 [0, 0, 0, 0, 1]",
        en="softmax([−24, −10, 0, 10, 24]) is almost [0, 0, 0, 0, 1]",
    ),
    quote="输出: [0, 0, 0, 0, 1]  ← 几乎全部概率集中在最大值",
    where="II, L59-63",
    experiment="lanes",
)
def _s2_11() -> Outcome:
    p = ss.softmax(_PLAIN)
    return Outcome.of(
        {
            Text(zh="各项与 [0, 0, 0, 0, 1] 相差不到 0.01", en="within 0.01 of [0, 0, 0, 0, 1]"): off_by(
                p, [0, 0, 0, 0, 1]
            )
            < 0.01
        },
        measured=listed(p, ".2g"),
        because={
            "holds": Text(
                zh=f"权重之比是 e 的分数差次方：最大的分数领先 14，其余各项合计只得到 {1.0 - p[4]:.1e}。",
                en=f"The ratio of two weights is e to the difference of their scores: the largest leads by 14, and all the "
                f"others together get {1.0 - p[4]:.1e}.",
            )
        },
    )


@claim(
    "S2-12",
    says=Text(
        zh="softmax 的对角导数是 s_i(1 − s_i)",
        en="The derivative of a softmax entry with respect to its own input is s_i(1 − s_i)",
    ),
    quote="Softmax 函数的梯度：",
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
        because={
            "holds": Text(
                zh="x_i 既在分子里，也在分母里：分子给出 s_i，分母减去 s_i²，合起来是雅可比矩阵的对角线 s_i(1 − s_i)。",
                en="x_i stands in the numerator and in the sum below it: the first gives s_i, the second takes away s_i². "
                "Together they are the Jacobian's diagonal, s_i(1 − s_i).",
            )
        },
        evidence="derived",
    )


@claim(
    "S2-13",
    says=Text(
        zh="s 接近 0 或 1 时 s(1 − s) 接近 0，梯度消失",
        en="When s is near 0 or 1, s(1 − s) is near 0 and the gradient vanishes",
    ),
    quote="梯度接近 0，导致梯度消失",
    where="II, L70-72",
    experiment="saturation",
)
def _s2_13() -> Outcome:
    p = ss.softmax(_PLAIN)
    slopes = p * (1.0 - p)
    whole = float(np.linalg.norm(ss.jacobian(p)))
    ends = [float(np.max(s * (1.0 - s))) for s in (ss.softmax(np.array([gap, 0.0])) for gap in (0.0, 10.0, 20.0, 30.0))]
    return Outcome.of(
        {
            Text(
                zh="两个键，差 0、10、20、30：越来越小，趋于 0", en="two keys, gaps 0, 10, 20, 30: falling towards 0"
            ): all(after < 1e-3 * before for before, after in itertools.pairwise(ends)),
            Text(zh="例子中的五项", en="the example's five entries"): bool((slopes < 1e-6).all()),
            Text(zh="整个雅可比矩阵", en="the whole Jacobian"): whole < 1e-5,
        },
        measured=Text(
            zh=f"例子的 s(1−s)：{listed(slopes, '.1e')}；‖J‖ = {whole:.1e}；两个键：{listed(ends, '.1e')}",
            en=f"s(1−s) in the example: {listed(slopes, '.1e')}; ‖J‖ = {whole:.1e}; two keys: {listed(ends, '.1e')}",
        ),
        because={
            "holds": Text(
                zh="s 和 1 − s 中总有一个接近 0，乘积也就接近 0；非对角项 −s_i·s_j 同样小，所以几乎没有梯度能通过这个 softmax。",
                en="One of s and 1 − s is near 0, and so is their product; the off-diagonal entries −s_i·s_j are just as small, so "
                "hardly any gradient gets through this softmax.",
            )
        },
    )


def _divided(d: int) -> np.ndarray:
    """The text's five scores after dividing by √d."""
    return np.asarray(_PLAIN / math.sqrt(d))


@claim(
    "S2-17",
    says=Text(
        zh="[−24, −10, 0, 10, 24] 缩放后是 [−3, −1, 0, 1, 3]",
        en="[−24, −10, 0, 10, 24] becomes [−3, −1, 0, 1, 3] when scaled",
    ),
    quote="Softmax 输入：[-3, -1, 0, 1, 3]",
    where="III, L92",
    experiment="lanes",
)
def _s2_17() -> Outcome:
    scaled = _divided(64)
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
        instead=Text(
            zh=f"[−24, −10, 0, 10, 24] 除以 √64 = 8 是 {listed(scaled, 'g')}",
            en=f"[−24, −10, 0, 10, 24] divided by √64 = 8 is {listed(scaled, 'g')}",
        ),
    )


@claim(
    "S2-20",
    says=Text(
        zh="[−3, −1, 0, 1, 3] 的 softmax 是 [0.012, 0.089, 0.243, 0.661, 0.995]",
        en="The softmax of [−3, −1, 0, 1, 3] is [0.012, 0.089, 0.243, 0.661, 0.995]",
    ),
    quote="输出: [0.012, 0.089, 0.243, 0.661, 0.995]",
    where="III, L99-101",
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
                zh=f"文中 5 个数之和是 {total:.3f}，而 softmax 的各项之和总是 1；况且 −3 与 3 的权重之比应是 e⁶ ≈ {math.exp(6):.0f}。",
                en=f"The 5 numbers in the text add up to {total:.3f}, while a softmax always adds up to 1; and the weights of −3 "
                f"and 3 should be e⁶ ≈ {math.exp(6):.0f} times apart.",
            )
        },
        instead=Text(
            zh=f"[−3, −1, 0, 1, 3] 的 softmax 是 {listed(p, '.3f')}",
            en=f"The softmax of [−3, −1, 0, 1, 3] is {listed(p, '.3f')}",
        ),
    )


@claim(
    "S2-21",
    says=Text(zh="缩放后的分布更平滑", en="The scaled distribution is smoother"),
    quote="← 分布更平滑",
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
                zh=f"除以 8 使分数的差缩小到八分之一，最大权重从 1 − {1.0 - ss.softmax(_PLAIN)[4]:.1g} 降到 {after.peak:.2f}：更平滑，但离均匀分布还很远。",
                en=f"Dividing by 8 makes the differences an eighth as large, and the largest weight falls from 1 − "
                f"{1.0 - ss.softmax(_PLAIN)[4]:.1g} to {after.peak:.2f}: smoother, but still far from uniform.",
            )
        },
    )


@claim(
    "S2-22",
    says=Text(zh="缩放后每个 s(1 − s) 都大于 0.01", en="After scaling, every s(1 − s) is above 0.01"),
    quote="梯度更健康：",
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
        instead=Text(
            zh=f"缩放后 5 个 s(1 − s) 中有 {int((slopes > 0.01).sum())} 个大于 0.01，最小的是 {slopes.min():.4f}",
            en=f"After scaling, {int((slopes > 0.01).sum())} of the 5 s(1 − s) are above 0.01; the smallest is {slopes.min():.4f}",
        ),
    )
