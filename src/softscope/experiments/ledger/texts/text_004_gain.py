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
    quote="当d越小，结果会越趋近one-hot",
    where="Comment L1; Proof 1 title L36; L74-77",
    experiment="extremes",
)
def _s4_01() -> Outcome:
    rows = 8.0 * generator("S4-01").standard_normal((2_000, 10))  # scores as at d = 64, held fixed
    fixed = {d: estimate(ss.partition(rows, temperature=math.sqrt(d)).entropy) for d in (16, 256)}
    real = {keys: {d: entropies(d, keys=keys, n=n) for d in (16, 256)} for keys, n in ((10, 4_000), (100, 400))}
    return Outcome.of(
        under={
            Text(zh="分数不变，只改 √d", en="the scores stay as they are, only √d changes"): fixed[16].below(
                fixed[256].mean - 0.1
            ),
        }
        | {
            Text(zh=f"q、k 有 d 个随机分量，{keys} 个键", en=f"q and k have d random components, {keys} keys"): found[
                16
            ].below(found[256].mean - 0.1)
            for keys, found in real.items()
        },
        measured=Text(
            zh=f"平均熵（nat），d = 16 / 256：分数不变 {fixed[16]:.2f} / {fixed[256]:.2f}；随机的 q、k："
            + "，".join(f"{keys} 个键 {found[16]:.2f} / {found[256]:.2f}" for keys, found in real.items()),
            en=f"mean entropy in nats, d = 16 / 256: scores as they are {fixed[16]:.2f} / {fixed[256]:.2f}; random q and k: "
            + ", ".join(f"{keys} keys {found[16]:.2f} / {found[256]:.2f}" for keys, found in real.items()),
        ),
        because={
            "only-if": Text(
                zh="q·k 是 d 项之和，标准差本身按 √d 增长，正好与 1/√d 抵消，所以换用更小的 d，注意力并不会变尖锐。",
                en="q·k is a sum of d terms whose spread itself grows like √d, and 1/√d cancels exactly that, so attention with a smaller d is no sharper.",
            )
        },
        only_if=Text(
            zh="分数 QKᵀ 保持不变，只有除数 √d 在变",
            en="the scores QKᵀ are held fixed and only the divisor √d changes",
        ),
    )


@claim(
    "S4-02",
    says=Text(
        zh="两项的 softmax 是 e^{x_i} 除以 e^{x_1} + e^{x_2}",
        en="The softmax of two entries is e^{x_i} over e^{x_1} + e^{x_2}",
    ),
    quote="the softmax function gives:",
    where="L5; §1 L40-42",
)
def _s4_02() -> Outcome:
    x = 5.0 * generator("S4-02").standard_normal((1_000, 2))
    error = off_by(ss.softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="随机的数对符合公式", en="random pairs follow the formula"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(x)} 对）", en=f"largest error {error:.1g} (n = {len(x)} pairs)"
        ),
        because={"holds": Text(zh="这就是 n = 2 时的定义。", en="This is the definition, with n = 2.")},
    )


@claim(
    "S4-03",
    says=Text(zh="两个指数之比 a 等于 e^{x_1 − x_2}", en="The ratio a of the two exponentials is e^{x_1 − x_2}"),
    quote="Let's define $a$ as the ratio of the exponentials",
    where="L7-9; §2 L46-47",
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
        because={
            "holds": Text(
                zh="同底的幂相除，指数相减。softmax 的分母相同，所以权重之比也是 a。",
                en="To divide exponentials, subtract their exponents. Softmax divides both by the same sum, so the ratio of the weights is a, too.",
            )
        },
        evidence="derived",
    )


@claim(
    "S4-04",
    says=Text(
        zh="输入乘以 k > 0，比值变为 a′ = a^k", en="Multiplying the input by k > 0 turns the ratio into a′ = a^k"
    ),
    quote="The new ratio becomes: $a' = e^{k(x_1-x_2)} = a^k$",
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
        evidence="derived",
    )


def _powers(k: float, why: Text, *, larger: bool, low: float = 0.0) -> Outcome:
    """Whether a^k is larger (or smaller) than a, and above `low`, for a below, at and above 1; `why` shows them all."""
    after = {a: float(np.divide(*ss.softmax([k * math.log(a), 0.0]))) for a in A_RATIOS}
    beyond = {a: (power > a + 1e-9 if larger else power < a - 1e-9) and power > low for a, power in after.items()}
    below, one, above = (f"{power:.3f}" for power in after.values())
    return Outcome.of(
        under={f"a = {a:g}": held for a, held in beyond.items()},
        measured=f"k = {k:g}; " + ", ".join(f"a = {a:g}: a′ = {power:.3f}" for a, power in after.items()),
        because={"only-if": why.format(below=below, one=one, above=above)},
        only_if=ONLY_ABOVE_ONE,
    )


ROOTS = Text(
    zh="0 < k < 1 时，a^k 像开方：从两边向 1 靠拢。2 变为 {above}，变小；0.5 变为 {below}，变大；1 不变。",
    en="For 0 < k < 1, a^k is a kind of root, which brings a closer to 1 from either side: 2 falls to {above}, 0.5 rises to {below}, and 1 stays.",
)


@claim(
    "S4-05",
    says=Text(zh="a > 0 且 k > 1 时，a^k > a", en="For a > 0 and k > 1, a^k > a"),
    quote="When $k > 1$: $a' = a^k > a$",
    where="L15-20; §4 L57-58",
    experiment="extremes",
)
def _s4_05() -> Outcome:
    why = Text(
        zh="大于 1 的数越乘越大（2 变为 {above}），小于 1 的数越乘越小（0.5 变为 {below}），1 不变。",
        en="A number above 1 grows when multiplied by itself (2 becomes {above}), a number below 1 shrinks (0.5 becomes {below}), and 1 stays.",
    )
    return _powers(2.0, why, larger=True)


@claim(
    "S4-06",
    says=Text(zh="a > 0 且 0 < k < 1 时，a^k < a", en="For a > 0 and 0 < k < 1, a^k < a"),
    quote="When $0 < k < 1$: $a' = a^k < a$",
    where="L19; §4 L57-59",
    experiment="extremes",
)
def _s4_06() -> Outcome:
    return _powers(0.5, ROOTS, larger=False)


@claim(
    "S4-07",
    says=Text(zh="k 越大，输出越接近 one-hot", en="The larger k is, the closer the output is to one-hot"),
    quote="The larger $k$ is, the more extreme the ratio becomes, pushing the softmax output closer to a one-hot vector",
    where="L22; §4 L61",
    experiment="extremes",
)
def _s4_07() -> Outcome:
    gains = (1.0, 4.0, 16.0, 64.0)
    peaks = {
        str(row): [float(ss.softmax([k * x for x in row]).max()) for k in gains]
        for row in ([1, 2], [2, 1], [1, 1, 2], [1, 2, 2])
    }
    return Outcome.of(
        under={name: p[-1] > 1.0 - 1e-9 and p[0] < p[1] < p[2] <= p[3] for name, p in peaks.items()},
        measured=Text(
            zh="k = 1、4、16、64 时的最大权重：" + "，".join(f"{row} {listed(p, '.3f')}" for row, p in peaks.items()),
            en="largest weight at k = 1, 4, 16, 64: "
            + ", ".join(f"{row} {listed(p, '.3f')}" for row, p in peaks.items()),
        ),
        because={
            "only-if": Text(
                zh=f"放大 k 倍，与最大值的差距也放大 k 倍，其余各项随之消失；但并列最大的几项之间没有差距，始终平分权重（各 {peaks['[1, 2, 2]'][-1]:.1f}）。",
                en=f"A gain of k widens every gap to the largest entry k times, and the others fade; but entries tied for the maximum have no gap between them and always share the weight ({peaks['[1, 2, 2]'][-1]:.1f} each).",
            )
        },
        only_if=Text(zh="最大的分数只有一个", en="there is only one largest score"),
    )


@claim(
    "S4-08",
    says=Text(zh="k > 1 时，k 越大，a′ = a^k 越大", en="For k > 1, the larger k is, the larger a′ = a^k is"),
    quote="$k$ 越大， a'越大",
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
                zh="小于 1 的数，幂次越高越小；但输出同样更接近 one-hot，只是偏向另一项。",
                en="The higher the power of a number below 1, the smaller it is; the output still gets closer to one-hot, but at the other entry.",
            )
        },
        only_if=ONLY_ABOVE_ONE,
    )


@claim(
    "S4-09",
    says=Text(zh="0 < k < 1 时，1 < a′ < a", en="For 0 < k < 1, 1 < a′ < a"),
    quote="when 0<k<1, $a'= a^k \\Rightarrow 1<a'<a $",
    where="L23",
    experiment="extremes",
)
def _s4_09() -> Outcome:
    return _powers(0.5, ROOTS, larger=False, low=1.0)
