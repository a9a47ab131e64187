"""Text 004, proof 1 applied to attention, and the slip in its list of cases."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, generator
from softscope.experiments.ledger.texts.text_004_gain import A_RATIOS, ONLY_ABOVE_ONE


@claim(
    "S4-10",
    says=Text(zh="注意力中送入 softmax 的向量有 d 项", en="The vector fed to softmax in attention has d entries"),
    where="L29; §5 L67-68",
    experiment="scores",
)
def _s4_10() -> Outcome:
    shapes = {}
    for keys, d in ((10, 64), (64, 16), (100, 8)):
        rng = generator(f"S4-10 {keys} {d}")
        q, k = rng.standard_normal((1, 5, d)), rng.standard_normal((1, keys, d))
        shapes[keys, d] = ss.attention(q, k, np.eye(keys)[None]).shape[-1]
    return Outcome.of(
        {
            Text(zh=f"{keys} 个键，d = {d}", en=f"{keys} keys, d = {d}"): entries == d
            for (keys, d), entries in shapes.items()
        },
        measured=Text(
            zh="每行的项数："
            + "，".join(f"{keys} 个键、d = {d} 时 {entries}" for (keys, d), entries in shapes.items()),
            en="entries in a row: "
            + ", ".join(f"{keys} keys, d = {d}: {entries}" for (keys, d), entries in shapes.items()),
        ),
        because={
            "fails": Text(
                zh="QKᵀ 的每一行中，每个键对应一项；d 这一维在点积中已经求和消去。",
                en="A row of QKᵀ has one entry per key; d is summed out in the dot product.",
            )
        },
    )


@claim(
    "S4-11",
    says=Text(zh="除以 √d 就是 k = 1/√d，a′ = a^{1/√d}", en="Dividing by √d means k = 1/√d, hence a′ = a^{1/√d}"),
    where="L32; §5 L70",
    experiment="extremes",
)
def _s4_11() -> Outcome:
    x = generator("S4-11").standard_normal((200, 10)) * 8.0
    worst = 0.0
    for d in (4, 64, 1024):
        p = ss.log_softmax(x, temperature=math.sqrt(d))
        plain = ss.log_softmax(x)
        worst = max(worst, float(np.abs((p[:, 0] - p[:, 1]) - (plain[:, 0] - plain[:, 1]) / math.sqrt(d)).max()))
    return Outcome.of(
        {"d = 4, 64, 1024": worst < 1e-10},
        measured=Text(
            zh=f"log a′ 与 log a/√d 最多相差 {worst:.1g}（n = {len(x)} 行）",
            en=f"log a′ is within {worst:.1g} of log a/√d (n = {len(x)} rows)",
        ),
        because={
            "holds": Text(
                zh="缩放就是对比值取幂，也就是把比值的对数除以同一个数。",
                en="Scaling raises the ratio to a power, which means dividing its logarithm.",
            )
        },
    )


@claim(
    "S4-12",
    says=Text(zh="d 减小时 1/√d 增大", en="1/√d increases as d decreases"),
    where="§6 L75",
    experiment="extremes",
)
def _s4_12() -> Outcome:
    import sympy

    d = sympy.Symbol("d", positive=True)
    slope = sympy.diff(1 / sympy.sqrt(d), d)
    return Outcome.of(
        {Text(zh="对 d 的导数为负", en="the derivative with respect to d is negative"): bool(slope.is_negative)},
        measured=Text(zh=f"导数 {slope}", en=f"derivative {slope}"),
        because={"holds": Text(zh="对任何 d > 0，导数都是负的。", en="The derivative is negative for every d > 0.")},
    )


@claim(
    "S4-13",
    says=Text(zh="d 减小时，a′ = a^{1/√d} 增大", en="a′ = a^{1/√d} increases as d decreases"),
    where="§6 L76",
    experiment="extremes",
)
def _s4_13() -> Outcome:
    ratios = {
        a: [float(np.divide(*ss.softmax([math.log(a), 0.0], temperature=math.sqrt(d)))) for d in (64, 16, 4)]
        for a in A_RATIOS
    }
    return Outcome.of(
        under={
            f"a = {a:g}": first < second - 1e-9 and second < third - 1e-9
            for a, (first, second, third) in ratios.items()
        },
        measured=Text(
            zh="d = 64、16、4 时的 a′："
            + "；".join(f"a = {a:g}：{x:.3f}、{y:.3f}、{z:.3f}" for a, (x, y, z) in ratios.items()),
            en="a′ at d = 64, 16, 4: "
            + "; ".join(f"a = {a:g}: {x:.3f}, {y:.3f}, {z:.3f}" for a, (x, y, z) in ratios.items()),
        ),
        because={
            "only-if": Text(
                zh="a < 1 时 a′ 反而减小：它离 1 更远，但在另一边。",
                en="For a < 1 it decreases instead: further from 1, but on the other side.",
            )
        },
        only_if=ONLY_ABOVE_ONE,
    )


@claim(
    "S4-24",
    says=Text(
        zh="在“如果 k > 1”的前提下，列出 k > 1 和 0 < k < 1 两种情形",
        en="Under the condition k > 1, it lists two cases, k > 1 and 0 < k < 1",
    ),
    where="L15",
    experiment="extremes",
)
def _s4_24() -> Outcome:
    import sympy

    condition = sympy.Interval.open(1, sympy.oo)
    cases = {"k > 1": sympy.Interval.open(1, sympy.oo), "0 < k < 1": sympy.Interval.open(0, 1)}
    possible = {name: condition.intersect(values) for name, values in cases.items()}
    return Outcome.of(
        under={name: not found.is_empty for name, found in possible.items()},
        measured=Text(
            zh="；".join(
                f"k > 1 且 {name}：{'空集' if found.is_empty else '可能'}" for name, found in possible.items()
            ),
            en="; ".join(
                f"k > 1 and {name}: {'empty' if found.is_empty else 'possible'}" for name, found in possible.items()
            ),
        ),
        because={
            "only-if": Text(
                zh="在 k > 1 的前提下，第二种情形不可能出现。", en="If k > 1, the second case cannot occur."
            )
        },
        only_if=Text(
            zh="把前提理解为 k > 0，与上一行一致", en="the condition is read as k > 0, as in the previous line"
        ),
    )
