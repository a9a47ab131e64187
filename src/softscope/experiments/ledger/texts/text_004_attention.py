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
    quote="The general form for d-dimensional case is",
    where="L29; §5 L65-68",
)
def _s4_10() -> Outcome:
    shapes = {}
    for keys, d in ((10, 64), (64, 16), (100, 8)):
        rng = generator(f"S4-10 {keys} {d}")
        q, k = rng.standard_normal((1, 5, d)), rng.standard_normal((1, keys, d))
        shapes[keys, d] = ss.attention(q, k, np.eye(keys)[None]).shape[-1]
    return Outcome.of(
        {
            Text(zh=f"{keys} 个键、d = {d} 时有 {d} 项", en=f"{d} entries with {keys} keys and d = {d}"): entries == d
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
                zh="QKᵀ 的一行是一个查询与每个键的点积，每个键一项；d 这一维在点积中已经求和消去。键数恰好等于 d 只是巧合。",
                en="A row of QKᵀ holds the dot products of one query with every key, one entry per key; d is summed out in the dot product. That there are d keys would be a coincidence.",
            )
        },
        instead=Text(
            zh="注意力中送入 softmax 的向量，每个键对应一项",
            en="The vector fed to softmax in attention has one entry per key",
        ),
    )


@claim(
    "S4-11",
    says=Text(zh="除以 √d 就是 k = 1/√d，a′ = a^{1/√d}", en="Dividing by √d means k = 1/√d, hence a′ = a^{1/√d}"),
    quote="it's equivalent to setting $k = \\frac{1}{\\sqrt{d}}$",
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
        {Text(zh="d = 4、64、1024 时 log a′ = log a/√d", en="log a′ = log a/√d at d = 4, 64, 1024"): worst < 1e-10},
        measured=Text(
            zh=f"log a′ 与 log a/√d 最多相差 {worst:.1g}（n = {len(x)} 行）",
            en=f"log a′ is within {worst:.1g} of log a/√d (n = {len(x)} rows)",
        ),
        because={
            "holds": Text(
                zh="log a 就是两个分数之差；每个分数都除以 √d，差也就除以 √d。",
                en="log a is the difference of the two scores; divide every score by √d, and their difference is divided, too.",
            )
        },
    )


@claim(
    "S4-12",
    says=Text(zh="d 减小时 1/√d 增大", en="1/√d increases as d decreases"),
    quote="$\\frac{1}{\\sqrt{d}}$ increases",
    where="§6 L74-75",
)
def _s4_12() -> Outcome:
    import sympy

    d = sympy.Symbol("d", positive=True)
    factor = 1 / sympy.sqrt(d)
    slope = sympy.diff(factor, d)
    shown = ", ".join(f"{float(factor.subs(d, size)):g}" for size in (64, 16, 4))
    return Outcome.of(
        {Text(zh="对 d 的导数为负", en="the derivative with respect to d is negative"): bool(slope.is_negative)},
        measured=Text(zh=f"d = 64, 16, 4 时 1/√d 为 {shown}", en=f"1/√d at d = 64, 16, 4: {shown}"),
        because={
            "holds": Text(
                zh="分母 √d 变小，分数就变大；对任何 d > 0，导数都是负的。",
                en="As the denominator √d shrinks, the fraction grows; the derivative is negative for every d > 0.",
            )
        },
        evidence="derived",
    )


@claim(
    "S4-13",
    says=Text(zh="d 减小时，a′ = a^{1/√d} 增大", en="a′ = a^{1/√d} increases as d decreases"),
    quote="This makes the ratios more extreme ($a' = a^{\\frac{1}{\\sqrt{d}}}$ becomes larger)",
    where="§6 L74-76",
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
                zh="指数 1/√d 变大，比值离 1 更远。大于 1 的比值变大，小于 1 的比值反而变小，等于 1 的不变。",
                en="A larger exponent 1/√d takes the ratio further from 1: a ratio above 1 grows, one below 1 shrinks instead, and 1 stays.",
            )
        },
        only_if=ONLY_ABOVE_ONE,
    )


# Line 15 opens the list of cases, as open intervals of k.
PREMISE = (1, math.inf)
CASES = {"k > 1": (1, math.inf), "0 < k < 1": (0, 1)}


@claim(
    "S4-24",
    says=Text(
        zh="如果 k > 1，有两种情形：k > 1，以及 0 < k < 1",
        en="If k > 1, there are two cases: k > 1, and 0 < k < 1",
    ),
    quote="当 $a>0$ 时，如果 $k>1$：",
    where="L15-20",
)
def _s4_24() -> Outcome:
    possible = {name: max(low, PREMISE[0]) < min(high, PREMISE[1]) for name, (low, high) in CASES.items()}
    premise = f"k > {PREMISE[0]}"
    return Outcome.of(
        {
            Text(zh=f"{premise} 时可能有 {name}", en=f"{name} can occur if {premise}"): found
            for name, found in possible.items()
        },
        measured=Text(
            zh=f"{premise} 时，"
            + "；".join(f"{name} {'可能' if found else '不可能'}" for name, found in possible.items()),
            en=f"if {premise}, "
            + "; ".join(f"{name} is {'possible' if found else 'impossible'}" for name, found in possible.items()),
        ),
        because={
            "fails": Text(
                zh="没有一个 k 既大于 1 又小于 1，前提排除了第二种情形。前几行写的是 k > 0，前提应与它一致。",
                en="No k is both above 1 and below 1: the premise rules the second case out. Four lines earlier the text says k > 0, and that is the premise it needs.",
            )
        },
        instead=Text(
            zh="如果 k > 0 且 k ≠ 1，有两种情形：k > 1，以及 0 < k < 1",
            en="If k > 0 and k ≠ 1, there are two cases: k > 1, and 0 < k < 1",
        ),
        evidence="derived",
    )
