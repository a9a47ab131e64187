"""Text 000, part two: the derivative S(1−S), and what happens to it at 0 and 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, near, symbols
from softscope.experiments.ledger.texts.blocks import D, N, gradient_norms
from softscope.experiments.ledger.texts.figures import listed
from softscope.experiments.ledger.texts.jacobians import TOLERANCE, autograd_against_formula
from softscope.experiments.ledger.texts.saturated import cross_entropy_gradient, slope

if TYPE_CHECKING:
    from numpy.typing import NDArray


@claim(
    "S0-11",
    says=Text(
        zh="softmax 的导数是 ∂S_i/∂x_j = S_i(δ_ij − S_j)", en="The derivative of softmax is ∂S_i/∂x_j = S_i(δ_ij − S_j)"
    ),
    quote="它对于输入 $x_j$ 的导数公式（梯度）是",
    where="II, L43-45",
    experiment="saturation",
)
def _s0_11() -> Outcome:
    found = autograd_against_formula()
    return Outcome.of(
        {Text(zh="自动微分与公式一致", en="autograd agrees with the formula"): found.everywhere < TOLERANCE},
        measured=Text(
            zh=f"最大误差 {found.everywhere:.1g}（{found.rows} 行，每行 2 到 {found.longest} 项）",
            en=f"largest error {found.everywhere:.1g} ({found.rows} rows of 2 to {found.longest} entries)",
        ),
        because={
            "holds": Text(
                zh="x_j 增大时，分母总会按比例 S_j 变大，得到 −S_i S_j；分子只在 i = j 时变大，再得到 +S_i。",
                en="As x_j rises, the denominator always grows by the share S_j, which gives −S_i S_j; the numerator grows only if i = j, which adds S_i.",
            )
        },
    )


@claim(
    "S0-12",
    says=Text(
        zh="对自己求导得到 S_i(1 − S_i)", en="The derivative with respect to an entry's own input is S_i(1 − S_i)"
    ),
    quote="对自己的求导（当 $i=j$ 时）",
    where="II, L47-49",
    experiment="saturation",
)
def _s0_12() -> Outcome:
    found = autograd_against_formula()
    return Outcome.of(
        {Text(zh="对角线与公式一致", en="the diagonal agrees with the formula"): found.diagonal < TOLERANCE},
        measured=Text(
            zh=f"对角线最大误差 {found.diagonal:.1g}（{found.rows} 行）",
            en=f"largest error on the diagonal {found.diagonal:.1g} ({found.rows} rows)",
        ),
        because={
            "holds": Text(zh="上一条公式取 i = j，δ_ij 就是 1。", en="In the previous formula, δ_ij is 1 where i = j.")
        },
    )


@claim(
    "S0-13",
    says=Text(
        zh="S(1−S) 像抛物线，类似 sigmoid 的导数",
        en="S(1−S) is shaped like a parabola, similar to the derivative of the sigmoid",
    ),
    quote="这是一个类似抛物线的函数（类似于逻辑回归 Sigmoid 的导数）",
    where="II, L53",
    experiment="saturation",
)
def _s0_13() -> Outcome:
    import sympy

    z, s = symbols(2)
    steepness = sympy.diff(s[0], z[0])
    sigmoid = 1 / (1 + sympy.exp(-(z[0] - z[1])))
    return Outcome.of(
        {
            Text(zh="以 S 为横轴，导数是抛物线 S − S²", en="against S, the derivative is the parabola S − S²"): equal(
                steepness, s[0] - s[0] ** 2
            ),
            Text(
                zh="两项 softmax 的导数就是 sigmoid 的导数", en="with two entries, it is the sigmoid's derivative"
            ): equal(steepness, sympy.diff(sigmoid, z[0])),
        },
        measured=Text(zh="符号推导，n = 2", en="derived symbolically, n = 2"),
        because={
            "holds": Text(
                zh="两项的 softmax 就是两个 logit 之差的 sigmoid。导数以 S 为横轴正好是抛物线，以 logit 为横轴则是一条钟形曲线。",
                en="A softmax of two entries is the sigmoid of their difference. Plotted against S, its derivative is exactly a parabola; against the logit, it is a bell curve.",
            )
        },
        evidence="derived",
    )


@claim(
    "S0-14",
    says=Text(zh="S = 0.5 时梯度是 0.25", en="At S = 0.5, the gradient is 0.25"),
    quote="输出 $S_i$ 可能是 0.5",
    where="II.1, L55-57",
    experiment="saturation",
)
def _s0_14() -> Outcome:
    rows = {"[1, 1]": [1.0, 1.0], "[ln 2, 0, 0]": [math.log(2.0), 0.0, 0.0]}
    weights = {name: float(ss.softmax(row)[0]) for name, row in rows.items()}
    slopes = {name: float(ss.jacobian(ss.softmax(row))[0, 0]) for name, row in rows.items()}
    return Outcome.of(
        {name: near(weights[name], "0.50") and near(slopes[name], "0.25") for name in rows},
        measured=Text(
            zh="；".join(f"{name}：S = {weights[name]:.2f}，斜率 {slopes[name]:.4f}" for name in rows),
            en="; ".join(f"{name}: S = {weights[name]:.2f}, slope {slopes[name]:.4f}" for name in rows),
        ),
        because={
            "holds": Text(
                zh="一半乘以一半是四分之一，与另一半怎样分给其余各项无关。",
                en="Half of a half is a quarter, however the other half is split among the rest.",
            )
        },
    )


def _steps_to_win(n: int) -> int:
    """Steps of size 1 up the gradient of s_1, from a uniform row of n entries until s_1 reaches 0.9."""
    x, steps = np.zeros(n), 0
    while ss.softmax(x)[0] < 0.9 and steps < 5_000:
        x, steps = x + ss.jacobian_product(ss.softmax(x), np.eye(n)[0]), steps + 1
    return steps


@claim(
    "S0-15",
    says=Text(
        zh="softmax 很平滑时（S 可能是 0.5），梯度很大，模型学得很快",
        en="When softmax is smooth (S may be 0.5), the gradient is large and the model learns fast",
    ),
    quote="梯度很大，模型学得很快",
    where="II.1, L55-59",
)
def _s0_15() -> Outcome:
    slopes = {n: float(ss.jacobian(ss.softmax(np.zeros(n)))[0, 0]) for n in (*range(2, 20), 1000)}
    large = 0.125  # half of the largest possible slope
    most = max((n for n, steepness in slopes.items() if steepness >= large), default=0)
    steps = {n: _steps_to_win(n) for n in (2, 6, 7, 1000)}
    return Outcome.of(
        under={
            Text(zh=f"完全平滑，{n} 项", en=f"perfectly smooth, {n} entries"): slopes[n] >= large
            for n in (2, 6, 7, 1000)
        },
        measured=Text(
            zh="完全均匀时每项的斜率，以及把一项的权重学到 0.9 所需的步数："
            + "；".join(f"{n} 项 {slopes[n]:.3f}，{count} 步" for n, count in steps.items()),
            en="slope per entry of a uniform row, and steps until one entry has learnt a weight of 0.9: "
            + "; ".join(f"{n} entries {slopes[n]:.3f}, {count} steps" for n, count in steps.items()),
        ),
        because={
            "only-if": Text(
                zh="最平滑的一行里每项只有 1/n，斜率 (1/n)(1 − 1/n) 也只有约 1/n；要靠两三项平分权重，S 才会是 0.5 左右。",
                en="In the smoothest row each entry has only 1/n, so its slope (1/n)(1 − 1/n) is only about 1/n too; S is around 0.5 only where two or three entries share the weight.",
            )
        },
        only_if=Text(
            zh=f"项数很少：不超过 {most} 项时，斜率不低于最大值 0.25 的一半，再多就低于一半",
            en=f"there are few entries: up to {most} the slope is at least half of its maximum of 0.25, beyond that it is less",
        ),
    )


@claim(
    "S0-16",
    says=Text(
        zh="S 接近 1（预测对了，置信度极高）时，梯度接近 0",
        en="When S is near 1 (a right prediction at very high confidence), the gradient is near 0",
    ),
    quote="情况 A（预测对了，置信度极高）：$S_i$ 接近 1",
    where="II.2 A, L63-65",
    experiment="saturation",
)
def _s0_16() -> Outcome:
    slopes = [slope([gap, 0.0], 0) for gap in (5.0, 20.0, 50.0)]
    loss = float(np.linalg.norm(cross_entropy_gradient([50.0, 0.0], target=0)))
    return Outcome.of(
        {
            Text(zh="差距越大，S(1−S) 越接近 0", en="the larger the gap, the closer S(1−S) is to 0"): slopes[0]
            > slopes[1]
            > slopes[2]
            and slopes[2] < 1e-9,
            Text(
                zh="预测对了，交叉熵的梯度也接近 0", en="cross-entropy's gradient is near 0 too for a right prediction"
            ): loss < 1e-9,
        },
        measured=Text(
            zh=f"差距 5、20、50 时 S(1−S) 为 {slopes[0]:.1e}、{slopes[1]:.1e}、{slopes[2]:.1e}；差距 50 时交叉熵的梯度 {loss:.1e}",
            en=f"S(1−S) at gaps of 5, 20, 50: {slopes[0]:.1e}, {slopes[1]:.1e}, {slopes[2]:.1e}; cross-entropy's gradient at a gap of 50: {loss:.1e}",
        ),
        because={
            "holds": Text(
                zh="S 接近 1 时，另一个因子 1 − S 趋于 0。预测已经对了，也就没有什么可学的。",
                en="As S nears 1, the other factor, 1 − S, tends to 0. The prediction is right, so there is nothing left to learn.",
            )
        },
    )


@claim(
    "S0-17",
    says=Text(
        zh="S 接近 0（预测错了，或者非目标类）时，梯度接近 0",
        en="When S is near 0 (a wrong prediction, or not the target), the gradient is near 0",
    ),
    quote="情况 B（预测错了，或者非目标类）：$S_i$ 接近 0",
    where="II.2 B, L67-69",
    experiment="saturation",
)
def _s0_17() -> Outcome:
    row = [200.0, 250.0]
    own = slope(row, 0)
    other, target = (abs(float(cross_entropy_gradient(row, target=which)[0])) for which in (1, 0))
    return Outcome.of(
        under={
            same("∂S/∂x"): own < 1e-9,
            Text(zh="交叉熵，该项不是目标", en="cross-entropy, the entry is not the target"): other < 1e-9,
            Text(
                zh="交叉熵，该项是目标（预测错了）", en="cross-entropy, the entry is the target (a wrong prediction)"
            ): target < 1e-9,
        },
        measured=Text(
            zh=f"∂S/∂x = {own:.1e}；交叉熵对该 logit 的梯度：非目标 {other:.1e}，目标 {target:.3f}",
            en=f"∂S/∂x = {own:.1e}; cross-entropy's gradient with respect to that logit: non-target {other:.1e}, target {target:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"S 本身几乎不动，但交叉熵看的是 log S：目标的 S 接近 0 时，梯度 S − 1 的大小是 {target:.0f}，恰好最大。",
                en=f"S itself barely moves, but cross-entropy looks at log S: when the target's S is near 0, the gradient S − 1 has size {target:.0f}, its largest.",
            )
        },
        only_if=Text(
            zh="该项不是交叉熵的目标",
            en="the entry is not the target of a cross-entropy loss",
        ),
    )


def _products(gap: float) -> NDArray[np.float64]:
    """S(1−S) of two logits so far apart, computed in float64."""
    s = ss.softmax([0.0, gap])
    return s * (1.0 - s)


def _vanishes(gap: float) -> bool:
    return bool((_products(gap) == 0.0).all())


@claim(
    "S0-18",
    says=Text(
        zh="极度自信（输出接近 0 或 1）时，S(1−S) 直接归零",
        en="At extreme confidence (outputs near 0 or 1), S(1−S) goes straight to zero",
    ),
    quote="当 Softmax 极度自信（输出接近 0 或 1）时，$S_i(1-S_i)$ 直接归零",
    where="II, L74",
    experiment="saturation",
)
def _s0_18() -> Outcome:
    logarithm = float(ss.log_softmax([0.0, 1000.0]).sum())  # log S + log(1 − S)
    least = next((gap for gap in range(1, 2_000) if _vanishes(float(gap))), 2_000)
    return Outcome.of(
        under={
            Text(zh="float64，差距 50", en="float64, a gap of 50"): _vanishes(50.0),
            Text(zh="float64，差距 1000", en="float64, a gap of 1000"): _vanishes(1000.0),
            Text(zh="没有舍入，差距 1000", en="without rounding, a gap of 1000"): logarithm == -math.inf,
        },
        measured=Text(
            zh=f"float64 中两项的 S(1−S)：差距 50 时 {listed(_products(50.0), '.2g')}，差距 1000 时 {listed(_products(1000.0))}；没有舍入时后者的对数是 {logarithm:.0f}",
            en=f"S(1−S) of the two entries in float64: {listed(_products(50.0), '.2g')} at a gap of 50, {listed(_products(1000.0))} at 1000; without rounding the latter's logarithm is {logarithm:.0f}",
        ),
        because={
            "only-if": Text(
                zh="S(1−S) 约为 e 的负差距次方，再小也不是 0；归零的是计算机里舍入过的数。",
                en="S(1−S) is about e to the minus gap, tiny but never 0; what becomes 0 is the rounded number in the computer.",
            )
        },
        only_if=Text(
            zh=f"用 float64 计算，且差距至少为 {least}", en=f"it is computed in float64 and the gap is {least} or more"
        ),
    )


@claim(
    "S0-19",
    says=Text(
        zh="这一层的梯度是 0 时，前面的层（Q、K、V 的权重）完全收不到更新信号",
        en="When this layer's gradient is 0, the layers before it (the weights of Q, K and V) get no update signal at all",
    ),
    quote="前面的层（Q, K, V的权重）完全收不到更新信号",
    where="II, L76",
    experiment="gradients",
)
def _s0_19() -> Outcome:
    healthy, stuck = gradient_norms(1.0), gradient_norms(1e6)
    names = ("W_Q", "W_K", "W_V")
    return Outcome.of(
        {
            Text(zh=f"{name} 收不到梯度", en=f"{name} gets no gradient"): stuck[name] <= 1e-6 * healthy[name]
            for name in names
        },
        measured=Text(
            zh=f"n = {N}、d = {D}，梯度范数（正常 → 分数放大 10⁶ 倍）："
            + "，".join(f"{name} {healthy[name]:.3g} → {stuck[name]:.3g}" for name in names),
            en=f"n = {N}, d = {D}, gradient norms (healthy → scores × 10⁶): "
            + ", ".join(f"{name} {healthy[name]:.3g} → {stuck[name]:.3g}" for name in names),
        ),
        because={
            "fails": Text(
                zh="通往 V 的路径不经过 softmax 的导数：输出是权重乘以 V，权重不为零，V 就能继续学习。",
                en="The path to V bypasses softmax's derivative: the output is weights times V, so while the weights are not zero, V keeps learning.",
            )
        },
        instead=Text(
            zh="这一层的梯度是 0 时，Q 和 K 的权重收不到更新信号，V 的权重照常更新",
            en="When this layer's gradient is 0, the weights of Q and K get no update signal, while those of V keep learning",
        ),
    )
