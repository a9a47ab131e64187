"""Text 004, proof 1: what a gain k does to two entries, and what 1/√d does in attention."""

from __future__ import annotations

import math

import numpy as np

import softscope as ss
from softscope._text import Text
from softscope.experiments.ledger import Outcome, claim, equal, estimate, generator, off_by
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.scores import entropies

A_RATIOS = (0.5, 1.0, 2.0)  # x1 below, equal to and above x2
ONLY_ABOVE_ONE = Text(zh="a > 1，即 x1 > x2", en="a > 1, that is, x1 > x2")


@claim(
    "S4-01",
    says=Text(
        zh="d 越小，softmax(QKᵀ/√d) 越接近 one-hot", en="The smaller d is, the closer softmax(QKᵀ/√d) is to one-hot"
    ),
    where="Comment L1; Proof 1 title L36; L74-77",
    experiment="entropy",
)
def _s4_01() -> Outcome:
    rows = 8.0 * generator("S4-01").standard_normal((2_000, 10))  # scores as at d = 64, held fixed
    fixed = {d: estimate(ss.partition(rows, temperature=math.sqrt(d)).entropy) for d in (16, 256)}
    real = {d: entropies(d) for d in (16, 256)}
    return Outcome.of(
        under={
            Text(zh="分数不变，只改 √d", en="scores held fixed, only √d changes"): fixed[16].below(
                fixed[256].mean - 0.1
            ),
            Text(zh="真正的注意力：q、k 有 d 个分量", en="real attention: q and k have d components"): real[16].below(
                real[256].mean - 0.1
            ),
        },
        measured=Text(
            zh=f"10 个键，平均熵（nat），d = 16 / 256：分数不变 {fixed[16]:.2f} / {fixed[256]:.2f}，真正的注意力 {real[16]:.2f} / {real[256]:.2f}（n = {fixed[16].n}、{real[16].n}）",
            en=f"10 keys, mean entropy in nats, d = 16 / 256: fixed scores {fixed[16]:.2f} / {fixed[256]:.2f}, real attention {real[16]:.2f} / {real[256]:.2f} (n = {fixed[16].n}, {real[16].n})",
        ),
        because={
            "only-if": Text(
                zh="q·k 的标准差本身按 √d 增长，正好与 1/√d 抵消，所以真正的注意力不会随 d 减小而变尖锐。",
                en="The spread of q·k itself grows like √d, and 1/√d cancels exactly that, so real attention does not sharpen as d falls.",
            )
        },
        only_if=Text(
            zh="分数保持不变，只有除数 √d 在变", en="the scores are held fixed and only the divisor √d changes"
        ),
    )


@claim(
    "S4-02",
    says=Text(
        zh="两项的 softmax 是 e^{x_i} 除以 e^{x_1} + e^{x_2}",
        en="The softmax of two entries is e^{x_i} over e^{x_1} + e^{x_2}",
    ),
    where="L5; §1 L42",
    experiment="extremes",
)
def _s4_02() -> Outcome:
    x = 5.0 * generator("S4-02").standard_normal((1_000, 2))
    error = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="随机的数对", en="random pairs"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(x)} 对）", en=f"largest error {error:.1g} (n = {len(x)} pairs)"
        ),
        because={"holds": Text(zh="这就是定义。", en="This is the definition.")},
    )


@claim(
    "S4-03",
    says=Text(zh="两个指数之比 a 等于 e^{x_1 − x_2}", en="The ratio a of the two exponentials is e^{x_1 − x_2}"),
    where="L7-9; §2 L47",
    experiment="extremes",
)
def _s4_03() -> Outcome:
    import sympy

    x1, x2 = sympy.symbols("x1 x2", real=True)
    p = ss.softmax([0.7, -0.4])
    error = abs(float(p[0] / p[1]) - math.exp(1.1))
    return Outcome.of(
        {
            Text(zh="符号推导", en="symbolically"): equal(sympy.exp(x1) / sympy.exp(x2), sympy.exp(x1 - x2)),
            Text(zh="权重之比也是 a", en="the ratio of the weights is also a"): error < 1e-12,
        },
        measured=Text(zh=f"符号推导；数值误差 {error:.1g}", en=f"derived symbolically; numerical error {error:.1g}"),
        because={"holds": Text(zh="同底的幂相除，指数相减。", en="To divide exponentials, subtract their exponents.")},
    )


@claim(
    "S4-04",
    says=Text(
        zh="输入乘以 k > 0，比值变为 a′ = a^k", en="Multiplying the input by k > 0 turns the ratio into a′ = a^k"
    ),
    where="L11-13; §3 L51-53",
    experiment="extremes",
)
def _s4_04() -> Outcome:
    import sympy

    x1, x2 = sympy.symbols("x1 x2", real=True)
    k = sympy.Symbol("k", positive=True)
    p, q = ss.softmax([0.7, -0.4]), ss.softmax([2.1, -1.2])
    error = abs(float(q[0] / q[1]) - float(p[0] / p[1]) ** 3)
    return Outcome.of(
        {
            Text(zh="符号推导", en="symbolically"): equal(
                sympy.exp(k * x1) / sympy.exp(k * x2), sympy.exp(x1 - x2) ** k
            ),
            "k = 3": error < 1e-10,
        },
        measured=Text(
            zh=f"符号推导；k = 3 时误差 {error:.1g}", en=f"derived symbolically; error at k = 3: {error:.1g}"
        ),
        because={
            "holds": Text(
                zh="e 的 k(x_1 − x_2) 次方就是 a 的 k 次方。", en="The exponential of k(x_1 − x_2) is a to the power k."
            )
        },
    )


def _powers(name: str, k: float, low: float | None, larger: bool) -> Outcome:
    """Whether a^k is larger (or smaller) than a, and above `low` if given, for a below, at and above 1."""
    after = {a: float(np.divide(*ss.softmax([k * math.log(a), 0.0]))) for a in A_RATIOS}

    def held(a: float) -> bool:
        beyond = after[a] > a + 1e-9 if larger else after[a] < a - 1e-9
        return beyond and (low is None or after[a] > low)

    shown = ", ".join(f"a = {a:g}: a′ = {after[a]:.3f}" for a in A_RATIOS)
    return Outcome.of(
        under={f"a = {a:g}": held(a) for a in A_RATIOS},
        measured=f"{name}; {shown}",
        because={
            "only-if": Text(
                zh=f"a < 1 时方向相反（{A_RATIOS[0]:g} 变为 {after[A_RATIOS[0]]:.3f}），a = 1 时不变。",
                en=f"For a < 1 it goes the other way ({A_RATIOS[0]:g} becomes {after[A_RATIOS[0]]:.3f}), and a = 1 does not change.",
            )
        },
        only_if=ONLY_ABOVE_ONE,
    )


@claim(
    "S4-05",
    says=Text(zh="a > 0 且 k > 1 时，a^k > a", en="For a > 0 and k > 1, a^k > a"),
    where="L15-20; §4 L57-58",
    experiment="extremes",
)
def _s4_05() -> Outcome:
    return _powers("k = 2", 2.0, None, larger=True)


@claim(
    "S4-06",
    says=Text(zh="a > 0 且 0 < k < 1 时，a^k < a", en="For a > 0 and 0 < k < 1, a^k < a"),
    where="L19; §4 L59",
    experiment="extremes",
)
def _s4_06() -> Outcome:
    return _powers("k = 0.5", 0.5, None, larger=False)


@claim(
    "S4-07",
    says=Text(zh="k 越大，输出越接近 one-hot", en="The larger k is, the closer the output is to one-hot"),
    where="L22; §4 L61",
    experiment="extremes",
)
def _s4_07() -> Outcome:
    gains = (1.0, 4.0, 16.0, 64.0)
    peaks = {
        name: [float(ss.softmax([k * x for x in row]).max()) for k in gains]
        for name, row in {"[1, 2]": [1, 2], "[2, 1]": [2, 1], "[1, 1]": [1, 1]}.items()
    }
    return Outcome.of(
        under={name: p[-1] > 1.0 - 1e-9 and p[0] < p[1] < p[2] <= p[3] for name, p in peaks.items()},
        measured=Text(
            zh=f"k = 1、4、16、64 时的最大权重：[1, 2] {listed(peaks['[1, 2]'], '.3f')}，[1, 1] {listed(peaks['[1, 1]'], '.3f')}",
            en=f"largest weight at k = 1, 4, 16, 64: [1, 2] {listed(peaks['[1, 2]'], '.3f')}, [1, 1] {listed(peaks['[1, 1]'], '.3f')}",
        ),
        because={
            "only-if": Text(
                zh=f"并列最大的各项，无论放大多少倍都平分权重（{peaks['[1, 1]'][-1]:.1f}）。",
                en=f"Entries tied for the maximum split the weight evenly at any gain ({peaks['[1, 1]'][-1]:.1f}).",
            )
        },
        only_if=Text(zh="最大的分数只有一个", en="there is only one largest score"),
    )


@claim(
    "S4-08",
    says=Text(zh="k 越大，a′ 越大", en="The larger k is, the larger a′ is"),
    where="L22",
    experiment="extremes",
)
def _s4_08() -> Outcome:
    powers = {a: [float(np.divide(*ss.softmax([k * math.log(a), 0.0]))) for k in (2.0, 4.0)] for a in A_RATIOS}
    return Outcome.of(
        under={f"a = {a:g}": two < four - 1e-9 for a, (two, four) in powers.items()},
        measured=", ".join(f"a = {a:g}: a² = {two:.3f}, a⁴ = {four:.3f}" for a, (two, four) in powers.items()),
        because={
            "only-if": Text(
                zh="a < 1 的幂越来越小；但输出同样更接近 one-hot，只是偏向另一项。",
                en="Powers of a < 1 get smaller; the output still gets closer to one-hot, but at the other entry.",
            )
        },
        only_if=ONLY_ABOVE_ONE,
    )


@claim(
    "S4-09",
    says=Text(zh="0 < k < 1 时，1 < a′ < a", en="For 0 < k < 1, 1 < a′ < a"),
    where="L23",
    experiment="extremes",
)
def _s4_09() -> Outcome:
    return _powers("k = 0.5", 0.5, 1.0, larger=False)
