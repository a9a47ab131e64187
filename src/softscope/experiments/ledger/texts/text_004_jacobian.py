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
    where="Proof 2 title, L82",
    experiment="saturation",
)
def _s4_14() -> Outcome:
    gaps = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    rows = np.array([[gap, 0.0, 0.0, 0.0] for gap in gaps])
    weights = ss.softmax(rows)
    norms = [float(np.linalg.norm(ss.jacobian(p))) for p in weights]
    through = [float(np.linalg.norm(ss.jacobian_product(p, np.array([-1.0, 1.0, 0.0, 0.0])))) for p in weights]
    wrong = float(np.linalg.norm(weights[-1] - np.eye(4)[1]))  # cross-entropy's gradient if entry 2 is right
    return Outcome.of(
        {
            Text(zh="‖dS/dZ‖ 趋近 0", en="‖dS/dZ‖ goes to 0"): norms[-1] < 1e-12
            and all(a > b for a, b in itertools.pairwise(norms)),
            Text(
                zh="损失直接作用在 S 上（注意力）：梯度消失",
                en="the loss acts directly on S, as in attention: the gradient vanishes",
            ): through[-1] < 1e-12,
        },
        measured=Text(
            zh=f"差距 0、1、2、5、10、20、50 时 ‖J‖：{listed(norms, '.1e')}",
            en=f"‖J‖ at gaps of 0, 1, 2, 5, 10, 20, 50: {listed(norms, '.1e')}",
        ),
        because={
            "holds": Text(
                zh=f"J 的每一项都含一个趋近 0 的因子；只有后面接交叉熵时，1/s 才会抵消它（自信却答错时梯度为 {wrong:.2f}）。",
                en=f"Every entry of J has a factor that goes to 0; only when cross-entropy follows does 1/s cancel it (the gradient is {wrong:.2f} when confidently wrong).",
            )
        },
    )


@claim(
    "S4-15",
    says=Text(zh="s_i 是 e^{z_i} 除以所有 e^{z_k} 之和", en="s_i is e^{z_i} over the sum of all e^{z_k}"),
    where="L86",
    experiment="saturation",
)
def _s4_15() -> Outcome:
    z = 3.0 * generator("S4-15").standard_normal((1_000, 4))
    error = off_by(ss.softmax(z), np.exp(z) / np.exp(z).sum(-1, keepdims=True))
    return Outcome.of(
        {"n = 4": error < 1e-12},
        measured=Text(
            zh=f"最大误差 {error:.1g}（n = {len(z)} 行）", en=f"largest error {error:.1g} (n = {len(z)} rows)"
        ),
        because={"holds": Text(zh="这就是定义。", en="This is the definition.")},
    )


@claim(
    "S4-16",
    says=Text(
        zh="4×4 的雅可比矩阵对角线上是 s_i(1−s_i)，其余是 −s_i s_j",
        en="The 4×4 Jacobian has s_i(1−s_i) on its diagonal and −s_i s_j elsewhere",
    ),
    where="L91-98; L148-158",
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
        because={"holds": Text(zh="求导直接得到印出的 16 项。", en="Differentiation gives the 16 printed entries.")},
    )


def _step(same: bool, because: Text) -> Outcome:
    """A step of the derivation, carried out symbolically for n = 4."""
    return Outcome.of({DERIVED: same}, measured=DERIVED, because={"holds": because})


@claim(
    "S4-17",
    says=Text(
        zh="∂s_i/∂z_j 等于 s_i 乘以 log s_i 对 z_j 的导数",
        en="∂s_i/∂z_j is s_i times the derivative of log s_i with respect to z_j",
    ),
    where="L105-107",
    experiment="saturation",
)
def _s4_17() -> Outcome:
    import sympy

    d = _derivation()
    logs = d["log s"].jacobian(d["z"])
    return _step(
        equal(d["J"], sympy.Matrix(4, 4, lambda i, j: d["s"][i] * logs[i, j])),
        Text(zh="对数求导：(log s)′ = s′/s。", en="The derivative of a logarithm: (log s)′ = s′/s."),
    )


@claim(
    "S4-18",
    says=same("log s_i = z_i − log Σ e^{z_l}"),
    where="L111",
    experiment="saturation",
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
    )


@claim(
    "S4-19",
    says=Text(zh="∂z_i/∂z_j 在 i = j 时是 1，否则是 0", en="∂z_i/∂z_j is 1 for i = j and 0 otherwise"),
    where="L116-124",
    experiment="saturation",
)
def _s4_19() -> Outcome:
    import sympy

    z = _derivation()["z"]
    return _step(
        equal(z.jacobian(z), sympy.eye(4)), Text(zh="各个 z 互不依赖。", en="The z's do not depend on each other.")
    )


@claim(
    "S4-20",
    says=Text(zh="log Σ e^{z_l} 对 z_j 的导数是 s_l", en="The derivative of log Σ e^{z_l} with respect to z_j is s_l"),
    where="L128-129",
    experiment="saturation",
)
def _s4_20() -> Outcome:
    import sympy

    d = _derivation()
    slopes = [sympy.diff(sympy.log(d["total"]), x) for x in d["z"]]
    same = all(equal(slopes[j], d["s"][j]) for j in range(4))
    other = any(equal(slopes[j], d["s"][i]) for j in range(4) for i in range(4) if i != j)
    return Outcome.of(
        under={"l = j": same, "l ≠ j": other},
        measured=DERIVED,
        because={
            "only-if": Text(
                zh="l 是求和指标，求和之后就不再出现；结果是 s_j。",
                en="l is the summation index and is gone once the sum is taken; the result is s_j.",
            )
        },
        only_if=Text(zh="把 s_l 读作 s_j", en="s_l is read as s_j"),
    )


@claim(
    "S4-21",
    says=Text(zh="Σ e^{z_l} 对 z_j 的导数是 e^{z_j}", en="The derivative of Σ e^{z_l} with respect to z_j is e^{z_j}"),
    where="L132",
    experiment="saturation",
)
def _s4_21() -> Outcome:
    import sympy

    d = _derivation()
    same = all(equal(sympy.diff(d["total"], x), sympy.exp(x)) for x in d["z"])
    return _step(same, Text(zh="只有一项含有 z_j。", en="Only one term contains z_j."))


@claim(
    "S4-22",
    says=same("∂s_i/∂z_j = s_i(1{i = j} − s_j)"),
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
                zh="用 s_i 乘以前两步之差即得。", en="It is s_i times the difference of the previous two steps."
            )
        },
    )


@claim(
    "S4-23",
    says=Text(
        zh="雅可比矩阵的第 i 行第 j 列是 ∂s_i/∂z_j，对任何 n",
        en="Row i, column j of the Jacobian is ∂s_i/∂z_j, for any n",
    ),
    where="L140-146",
    experiment="saturation",
)
def _s4_23() -> Outcome:
    found = autograd_against_formula()
    x, step = np.array([0.2, -1.0, 0.7]), 1e-6
    column = (ss.softmax(x + step * np.eye(3)[2]) - ss.softmax(x - step * np.eye(3)[2])) / (2 * step)
    error = off_by(ss.jacobian(ss.softmax(x))[:, 2], column)
    return Outcome.of(
        {
            f"n = 2 … {found.longest}": found.everywhere < TOLERANCE,
            Text(zh="移动 z_3，得到第 3 列", en="moving z_3 gives column 3"): error < 1e-8,
        },
        measured=Text(
            zh=f"最大误差 {found.everywhere:.1g}（{found.rows} 行，n = 2 到 {found.longest}）",
            en=f"largest error {found.everywhere:.1g} ({found.rows} rows, n = 2 to {found.longest})",
        ),
        because={
            "holds": Text(
                zh="softmax 的雅可比矩阵还是对称的，行列互换结果不变。",
                en="The Jacobian of softmax is also symmetric: swapping rows and columns changes nothing.",
            )
        },
    )
