"""Text 004, proof 2: the Jacobian of softmax, step by step, and how it goes to 0 at one-hot."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, generator, off_by, symbols
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.jacobians import TOLERANCE, autograd_against_formula
from softscope.experiments.ledger.texts.saturated import cross_entropy_gradient

DERIVED = Text(zh="符号推导，n = 4", en="derived symbolically, n = 4")


@functools.cache
def _derivation() -> dict[str, Any]:
    """z, s and every intermediate result of the proof, for n = 4."""
    import sympy

    z, s = symbols(4)
    total = sum(sympy.exp(x) for x in z)
    return {"z": z, "s": s, "total": total, "J": s.jacobian(z), "log s": s.applyfunc(sympy.log)}


@claim(
    "S4-14",
    says=Text(
        zh="S 趋近 one-hot 时 dS/dZ 趋近 0，引起梯度消失",
        en="As S approaches one-hot, dS/dZ goes to 0 and the gradient vanishes",
    ),
    quote="趋近于 0， 会引起梯度消失",
    where="Proof 2 title, L82",
    experiment="saturation",
)
def _s4_14() -> Outcome:
    gaps = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    rows = [[gap, 0.0, 0.0, 0.0] for gap in gaps]
    weights = ss.softmax(np.array(rows))
    norms = [float(np.linalg.norm(ss.jacobian(p))) for p in weights]
    through = float(np.linalg.norm(ss.jacobian_product(weights[-1], np.array([-1.0, 1.0, 0.0, 0.0]))))
    wrong = float(np.linalg.norm(cross_entropy_gradient(rows[-1], 1)))
    return Outcome.of(
        {
            Text(zh="‖dS/dZ‖ 趋近 0", en="‖dS/dZ‖ goes to 0"): norms[-1] < 1e-12
            and all(a > b for a, b in itertools.pairwise(norms)),
            Text(zh="经过 S 的梯度消失", en="the gradient that passes through S vanishes"): through < 1e-12,
        },
        measured=Text(
            zh=f"差距 0、1、2、5、10、20、50 时 ‖dS/dZ‖：{listed(norms, '.1e')}；差距 50 时经过 S 到达 Z 的梯度 {through:.1e}",
            en=f"‖dS/dZ‖ at gaps of 0, 1, 2, 5, 10, 20, 50: {listed(norms, '.1e')}; gradient that reaches Z through S at a gap of 50: {through:.1e}",
        ),
        because={
            "holds": Text(
                zh=f"dS/dZ 的每一项都含一个趋近 0 的因子，所以经过它的梯度都会消失。只有交叉熵例外（见 S0-10）：它对 S 取对数，1/s 抵消了这个因子，自信却答错时梯度仍有 {wrong:.2f}。",
                en=f"Every entry of dS/dZ has a factor that goes to 0, so a gradient that passes through it vanishes. Cross-entropy is the exception (see S0-10): it takes the log of S, its 1/s cancels that factor, and when confidently wrong the gradient is still {wrong:.2f}.",
            )
        },
    )


@claim(
    "S4-15",
    says=Text(zh="s_i 是 e^{z_i} 除以所有 e^{z_k} 之和", en="s_i is e^{z_i} over the sum of all e^{z_k}"),
    quote="两者的关系是：$S = \\text{softmax}(Z)$",
    where="L84-86",
)
def _s4_15() -> Outcome:
    z = 3.0 * generator("S4-15").standard_normal((1_000, 4))
    error = off_by(ss.softmax(z), np.exp(z) / np.exp(z).sum(-1, keepdims=True))
    return Outcome.of(
        {Text(zh="随机的四项符合公式", en="random rows of four follow the formula"): error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(z)} 行）", en=f"largest error {error:.1g} (n = {len(z)} rows)"
        ),
        because={"holds": Text(zh="这就是 softmax 的定义。", en="This is the definition of softmax.")},
    )


@claim(
    "S4-16",
    says=Text(
        zh="4×4 的雅可比矩阵对角线上是 s_i(1−s_i)，其余是 −s_i s_j",
        en="The 4×4 Jacobian has s_i(1−s_i) on its diagonal and −s_i s_j elsewhere",
    ),
    quote="先给出 $S$ 对 $Z$ 偏导数的结论",
    where="L87-98; L148-158",
    experiment="saturation",
)
def _s4_16() -> Outcome:
    import sympy

    d = _derivation()
    printed = sympy.Matrix(4, 4, lambda i, j: d["s"][i] * (1 - d["s"][i]) if i == j else -d["s"][i] * d["s"][j])
    p = ss.softmax([0.3, -1.0, 2.0, 0.5])
    error = off_by(ss.jacobian(p), np.diag(p * (1 - p)) + np.diag(p * p) - np.outer(p, p))
    return Outcome.of(
        {
            Text(zh="符号推导", en="symbolically"): equal(d["J"], printed),
            Text(zh="数值", en="numerically"): error < TOLERANCE,
        },
        measured=Text(
            zh=f"符号推导，16 项；数值误差 {error:.1g}",
            en=f"derived symbolically, 16 entries; numerical error {error:.1g}",
        ),
        because={
            "holds": Text(
                zh="z_j 增大，s_j 从其余各项那里按比例取走权重：自己得 s_j(1−s_j)，每个 s_i 失去 s_i s_j。",
                en="As z_j rises, s_j takes weight from the others in proportion: it gains s_j(1−s_j), and every other s_i loses s_i s_j.",
            )
        },
        evidence="derived",
    )


def _step(formula: str, same: bool, because: Text) -> Outcome:
    """A step of the derivation, carried out symbolically for n = 4."""
    return Outcome.of({formula: same}, measured=DERIVED, because={"holds": because}, evidence="derived")


@claim(
    "S4-17",
    says=Text(
        zh="∂s_i/∂z_j 等于 s_i 乘以 log s_i 对 z_j 的导数",
        en="∂s_i/∂z_j is s_i times the derivative of log s_i with respect to z_j",
    ),
    quote="s_i \\cdot \\frac{\\partial}{\\partial z_j} \\log(s_i)",
    where="L105-107",
    experiment="saturation",
)
def _s4_17() -> Outcome:
    import sympy

    d = _derivation()
    logs = d["log s"].jacobian(d["z"])
    return _step(
        "∂s_i/∂z_j = s_i · ∂log s_i/∂z_j",
        equal(d["J"], sympy.Matrix(4, 4, lambda i, j: d["s"][i] * logs[i, j])),
        Text(
            zh="对数求导 (log s)′ = s′/s，两边同乘 s。",
            en="The derivative of a logarithm is (log s)′ = s′/s; multiply both sides by s.",
        ),
    )


@claim(
    "S4-18",
    says=same("log s_i = z_i − log Σ e^{z_l}"),
    quote="= z_i - \\log \\left(\\sum_{l=1}^n e^{z_l}\\right)",
    where="L109-111",
)
def _s4_18() -> Outcome:
    import sympy

    d = _derivation()
    z = 3.0 * generator("S4-18").standard_normal((100, 4))
    error = off_by(ss.log_softmax(z), z - np.log(np.exp(z).sum(-1, keepdims=True)))
    same = all(equal(sympy.exp(d["z"][i] - sympy.log(d["total"])), d["s"][i]) for i in range(4))
    return Outcome.of(
        {Text(zh="符号推导", en="symbolically"): same, Text(zh="数值", en="numerically"): error < TOLERANCE},
        measured=Text(zh=f"符号推导；数值误差 {error:.1g}", en=f"derived symbolically; numerical error {error:.1g}"),
        because={
            "holds": Text(
                zh="商的对数是对数的差。", en="The logarithm of a quotient is the difference of the logarithms."
            )
        },
        evidence="derived",
    )


@claim(
    "S4-19",
    says=Text(zh="∂z_i/∂z_j 在 i = j 时是 1，否则是 0", en="∂z_i/∂z_j is 1 for i = j and 0 otherwise"),
    quote="上式只看左半边我们可以得到以下结论",
    where="L116-124",
)
def _s4_19() -> Outcome:
    import sympy

    z = _derivation()["z"]
    return _step(
        "∂z_i/∂z_j = 1{i = j}",
        equal(z.jacobian(z), sympy.eye(4)),
        Text(
            zh="各个 z 是独立的输入：改变一个，其余不动。",
            en="The z's are independent inputs: changing one leaves the others alone.",
        ),
    )


@claim(
    "S4-20",
    says=Text(zh="log Σ e^{z_l} 对 z_j 的导数是 s_l", en="The derivative of log Σ e^{z_l} with respect to z_j is s_l"),
    quote="\\left(\\frac{\\partial}{\\partial z_j} \\sum_{l=1}^n e^{z_l}\\right) = s_l",
    where="L128-129",
    experiment="saturation",
)
def _s4_20() -> Outcome:
    import sympy

    d = _derivation()
    slopes = [sympy.diff(sympy.log(d["total"]), x) for x in d["z"]]
    found = {j: [i for i in range(4) if equal(slopes[j], d["s"][i])] for j in range(4)}
    return Outcome.of(
        {
            Text(
                zh="对每个 j，无论 l 取几，导数都等于 s_l", en="for every j, the derivative equals s_l whatever l is"
            ): all(len(equals) == 4 for equals in found.values())
        },
        measured=Text(
            zh="符号推导，n = 4；对 z_1、z_2、z_3、z_4 的导数等于："
            + "、".join("，".join(f"s_{i + 1}" for i in equals) for equals in found.values()),
            en="derived symbolically, n = 4; the derivatives with respect to z_1, z_2, z_3, z_4 equal: "
            + "; ".join(", ".join(f"s_{i + 1}" for i in equals) for equals in found.values()),
        ),
        because={
            "fails": Text(
                zh="l 是求和指标，求和之后就不再出现，s_l 没有所指。对 z_j 求导，和式中只剩 e^{z_j}，除以总和就是 s_j。",
                en="l is the summation index: once the sum is taken, there is no l left that s_l could refer to. Differentiating by z_j leaves e^{z_j} of the sum, and over the sum that is s_j.",
            )
        },
        instead=Text(
            zh="log Σ e^{z_l} 对 z_j 的导数是 s_j", en="The derivative of log Σ e^{z_l} with respect to z_j is s_j"
        ),
        evidence="derived",
    )


@claim(
    "S4-21",
    says=Text(zh="Σ e^{z_l} 对 z_j 的导数是 e^{z_j}", en="The derivative of Σ e^{z_l} with respect to z_j is e^{z_j}"),
    quote="= \\frac{\\partial}{\\partial z_j} [e^{z_j}] = e^{z_j}",
    where="L131-132",
    experiment="saturation",
)
def _s4_21() -> Outcome:
    import sympy

    d = _derivation()
    same = all(equal(sympy.diff(d["total"], x), sympy.exp(x)) for x in d["z"])
    return _step(
        "∂(Σ e^{z_l})/∂z_j = e^{z_j}",
        same,
        Text(
            zh="和式中只有一项含有 z_j，而 e 的幂的导数是它自己。",
            en="Only one term of the sum contains z_j, and an exponential is its own derivative.",
        ),
    )


@claim(
    "S4-22",
    says=same("∂s_i/∂z_j = s_i(1{i = j} − s_j)"),
    quote="s_i \\cdot (1\\{i = j\\} - s_j)",
    where="L137",
    experiment="saturation",
)
def _s4_22() -> Outcome:
    import sympy

    d = _derivation()
    printed = sympy.Matrix(4, 4, lambda i, j: d["s"][i] * (int(i == j) - d["s"][j]))
    found = autograd_against_formula()
    return Outcome.of(
        {
            Text(zh="符号推导", en="symbolically"): equal(d["J"], printed),
            Text(zh="自动求导", en="autograd"): found.everywhere < TOLERANCE,
        },
        measured=Text(
            zh=f"符号推导；与自动求导的最大误差 {found.everywhere:.1g}（{found.rows} 行）",
            en=f"derived symbolically; largest error against autograd {found.everywhere:.1g} ({found.rows} rows)",
        ),
        because={
            "holds": Text(
                zh="log s_i 对 z_j 的导数是 1{i = j} 减去 s_j；再乘以 s_i 即得。",
                en="The derivative of log s_i with respect to z_j is 1{i = j} minus s_j; times s_i, that is the formula.",
            )
        },
        evidence="derived",
    )


@claim(
    "S4-23",
    says=Text(
        zh="雅可比矩阵的第 i 行第 j 列是 ∂s_i/∂z_j，对任何 n",
        en="Row i, column j of the Jacobian is ∂s_i/∂z_j, for any n",
    ),
    quote="\\frac{dS}{dZ} = J_{softmax} =",
    where="L139-146",
)
def _s4_23() -> Outcome:
    found = autograd_against_formula()
    x, step = np.array([0.2, -1.0, 0.7]), 1e-6
    column = (ss.softmax(x + step * np.eye(3)[2]) - ss.softmax(x - step * np.eye(3)[2])) / (2 * step)
    error = off_by(ss.jacobian(ss.softmax(x))[:, 2], column)
    return Outcome.of(
        {
            Text(
                zh=f"n = 2 到 {found.longest} 都与自动微分一致",
                en=f"it agrees with autograd for n = 2 to {found.longest}",
            ): found.everywhere < TOLERANCE,
            Text(zh="移动 z_3，得到第 3 列", en="moving z_3 gives column 3"): error < 1e-8,
        },
        measured=Text(
            zh=f"最大误差 {found.everywhere:.1g}（{found.rows} 行，n = 2 到 {found.longest}）",
            en=f"largest error {found.everywhere:.1g} ({found.rows} rows, n = 2 to {found.longest})",
        ),
        because={
            "holds": Text(
                zh="第 j 列记录 z_j 变动时各个 s_i 怎样变。softmax 的雅可比矩阵还是对称的，行列互换也不会错。",
                en="Column j records how every s_i moves with z_j. The Jacobian of softmax is also symmetric, so swapping rows and columns would do no harm.",
            )
        },
    )
