"""Text 000, part two: the derivative S(1−S), and what happens to it at 0 and 1."""

from __future__ import annotations

import numpy as np

import softscope as ss
from softscope._text import Text, same
from softscope.experiments.ledger import Outcome, claim, equal, near, symbols
from softscope.experiments.ledger.texts.blocks import D, N, gradient_norms
from softscope.experiments.ledger.texts.jacobians import TOLERANCE, autograd_against_formula


@claim(
    "S0-11",
    says=Text(
        zh="softmax 的导数是 ∂S_i/∂x_j = S_i(δ_ij − S_j)", en="The derivative of softmax is ∂S_i/∂x_j = S_i(δ_ij − S_j)"
    ),
    where="II, L45",
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
                zh="自动微分在舍入误差内给出同样的矩阵。",
                en="Automatic differentiation gives the same matrix up to rounding.",
            )
        },
    )


@claim(
    "S0-12",
    says=Text(
        zh="对自己求导得到 S_i(1 − S_i)", en="The derivative with respect to an entry's own input is S_i(1 − S_i)"
    ),
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
        because={"holds": Text(zh="这是上一条公式在 i = j 时的情形。", en="It is the previous formula with i = j.")},
    )


@claim(
    "S0-13",
    says=Text(
        zh="S(1−S) 像抛物线，类似 sigmoid 的导数",
        en="S(1−S) is shaped like a parabola, similar to the derivative of the sigmoid",
    ),
    where="II, L53",
    experiment="saturation",
)
def _s0_13() -> Outcome:
    import sympy

    z, s = symbols(2)
    sigmoid = 1 / (1 + sympy.exp(-(z[0] - z[1])))
    weight = sympy.Symbol("s")
    curvature = sympy.diff(weight * (1 - weight), weight, 2)
    return Outcome.of(
        {
            Text(
                zh="以 S 为横轴是抛物线：二阶导数是负常数",
                en="a parabola in S: the second derivative is a negative constant",
            ): bool(curvature.is_constant() and curvature < 0),
            Text(
                zh="两项 softmax 的导数就是 sigmoid 的导数", en="with two entries, it is the sigmoid's derivative"
            ): equal(sympy.diff(s[0], z[0]), sympy.diff(sigmoid, z[0])),
        },
        measured=Text(zh=f"符号推导；二阶导数 {curvature}", en=f"derived symbolically; second derivative {curvature}"),
        because={
            "holds": Text(
                zh="以 S 为横轴，它正好是抛物线；以 logit 为横轴，则是 sigmoid 导数的钟形。",
                en="Plotted against S it is exactly a parabola; against the logit, it is the bell curve of the sigmoid's derivative.",
            )
        },
    )


@claim(
    "S0-14",
    says=Text(zh="S = 0.5 时梯度是 0.25", en="At S = 0.5, the gradient is 0.25"),
    where="II.1, L55-57",
    experiment="saturation",
)
def _s0_14() -> Outcome:
    slope = float(ss.jacobian(ss.softmax([1.0, 1.0]))[0, 0])
    return Outcome.of(
        {"S = 0.5": near(slope, "0.25")},
        measured=f"{slope:.4f}",
        because={
            "holds": Text(
                zh="两个相等的分数各得一半，斜率为四分之一。",
                en="Two equal scores get half each, so the slope is a quarter.",
            )
        },
    )


@claim(
    "S0-15",
    says=Text(
        zh="平滑的 softmax（例如 S = 0.5）梯度很大，学得很快",
        en="A smooth softmax (S = 0.5, say) has a large gradient and learns fast",
    ),
    where="II.1, L55-59",
    experiment="saturation",
)
def _s0_15() -> Outcome:
    slopes = {n: float(ss.jacobian(ss.softmax(np.zeros(n)))[0, 0]) for n in (2, 3, *range(4, 20), 100, 1000)}
    large = 0.125  # half of the largest possible slope
    most = max(n for n, slope in slopes.items() if slope >= large)
    trace = float(ss.partition(np.zeros(1000)).jacobian_trace)
    return Outcome.of(
        under={f"n = {n}": slopes[n] >= large for n in (2, 10, 1000)},
        measured=Text(
            zh=f"完全均匀时每项的斜率：n = 2 为 {slopes[2]:.3f}，n = 10 为 {slopes[10]:.3f}，n = 1000 为 {slopes[1000]:.4f}",
            en=f"slope per entry of a uniform row: {slopes[2]:.3f} at n = 2, {slopes[10]:.3f} at n = 10, {slopes[1000]:.4f} at n = 1000",
        ),
        because={
            "only-if": Text(
                zh=f"n 项均匀时每项的斜率只有约 1/n；大的是总和：n = 1000 时各项斜率之和为 {trace:.3f}。",
                en=f"With n equal entries, each slope is only about 1/n; what is large is their sum, {trace:.3f} at n = 1000.",
            )
        },
        only_if=Text(
            zh=f"项数很少：n 不超过 {most} 时，斜率不低于最大值 0.25 的一半",
            en=f"there are few entries: up to n = {most}, the slope is at least half of its maximum, 0.25",
        ),
    )


@claim(
    "S0-16",
    says=Text(zh="S 接近 1 时梯度接近 0", en="When S is near 1, the gradient is near 0"),
    where="II.2 A, L63-65",
    experiment="saturation",
)
def _s0_16() -> Outcome:
    import sympy

    s = sympy.Symbol("s")
    limit = sympy.limit(s * (1 - s), s, 1, "-")
    traces = [float(ss.partition([gap, 0.0]).jacobian_trace) / 2 for gap in (5.0, 20.0, 50.0)]
    return Outcome.of(
        {
            Text(zh="极限为 0", en="the limit is 0"): limit == 0,
            Text(zh="差距越大，它越小", en="it shrinks as the gap grows"): traces[0] > traces[1] > traces[2]
            and traces[2] < 1e-9,
        },
        measured=Text(
            zh=f"极限 {limit}；差距 5、20、50 时 S(1−S) 为 {traces[0]:.1e}、{traces[1]:.1e}、{traces[2]:.1e}",
            en=f"limit {limit}; S(1−S) at gaps of 5, 20, 50: {traces[0]:.1e}, {traces[1]:.1e}, {traces[2]:.1e}",
        ),
        because={"holds": Text(zh="另一个因子 1 − S 趋于 0。", en="The other factor, 1 − S, tends to 0.")},
    )


@claim(
    "S0-17",
    says=Text(
        zh="S 接近 0（预测错了，或者不是目标）时梯度接近 0",
        en="When S is near 0 (a wrong prediction, or not the target), the gradient is near 0",
    ),
    where="II.2 B, L67-69",
    experiment="saturation",
)
def _s0_17() -> Outcome:
    p = ss.softmax([200.0, 250.0])
    slope = float(ss.jacobian(p)[0, 0])
    other, target = float(p[0]), float(abs(p[0] - 1.0))
    return Outcome.of(
        under={
            same("∂S/∂x"): slope < 1e-9,
            Text(zh="交叉熵，该项不是目标", en="cross-entropy, if the entry is not the target"): other < 1e-9,
            Text(
                zh="交叉熵，该项是目标（预测错了）", en="cross-entropy, if the entry is the target (wrong prediction)"
            ): target < 1e-9,
        },
        measured=Text(
            zh=f"∂S/∂x = {slope:.1e}；交叉熵对该 logit 的梯度：非目标 {other:.1e}，目标 {target:.3f}",
            en=f"∂S/∂x = {slope:.1e}; cross-entropy's gradient with respect to that logit: non-target {other:.1e}, target {target:.3f}",
        ),
        because={
            "only-if": Text(
                zh=f"预测错了时，交叉熵的梯度 S − 1 的大小是 {target:.0f}，恰好最大。",
                en=f"When the prediction is wrong, cross-entropy's gradient S − 1 has size {target:.0f}, its largest.",
            )
        },
        only_if=Text(zh="该项不是交叉熵的目标", en="the entry is not the target of a cross-entropy loss"),
    )


@claim(
    "S0-18",
    says=Text(zh="极度自信时 S(1−S) 直接归零", en="At extreme confidence, S(1−S) goes straight to zero"),
    where="II, L74",
    experiment="saturation",
)
def _s0_18() -> Outcome:
    s = float(ss.softmax([0.0, 50.0])[1])
    rounded = s * (1.0 - s)
    exact = float(ss.partition([0.0, 50.0]).jacobian_trace) / 2
    return Outcome.of(
        under={
            Text(zh="先把 S 舍入为 float64，再算 S(1−S)", en="computed from S rounded to float64"): rounded == 0.0,
            Text(zh="精确值", en="exact value"): exact == 0.0,
        },
        measured=Text(
            zh=f"差距 50：由舍入后的 S 得 {rounded:g}，避开相消则得 {exact:.2e}",
            en=f"gap of 50: {rounded:g} from the rounded S, {exact:.2e} computed without cancellation",
        ),
        because={
            "only-if": Text(
                zh="精确的 S(1−S) 永不为零；归零的是舍入后的 1 − S。",
                en="The exact S(1−S) is never 0; what becomes 0 is the rounded 1 − S.",
            )
        },
        only_if=Text(zh="S 已舍入为 1", en="S has been rounded to 1"),
    )


@claim(
    "S0-19",
    says=Text(
        zh="这一层梯度为零时，Q、K、V 的权重都收不到更新",
        en="When this layer's gradient is zero, none of the weights of Q, K and V get updates",
    ),
    where="II, L76",
    experiment="gradients",
)
def _s0_19() -> Outcome:
    healthy, stuck = gradient_norms(1.0), gradient_norms(1e6)
    left = {name: stuck[name] / healthy[name] for name in ("W_Q", "W_K", "W_V")}
    return Outcome.of(
        under={name: part < 1e-6 for name, part in left.items()},
        measured=Text(
            zh=f"n = {N}、d = {D}，分数放大 10⁶ 倍后，梯度范数与原来之比：W_Q {left['W_Q']:.2g}、W_K {left['W_K']:.2g}、W_V {left['W_V']:.2f}",
            en=f"n = {N}, d = {D}, scores × 10⁶; gradient norms relative to before: W_Q {left['W_Q']:.2g}, W_K {left['W_K']:.2g}, W_V {left['W_V']:.2f}",
        ),
        because={
            "only-if": Text(
                zh="通往 V 的路径不经过 softmax 的导数：输出是权重乘以 V，权重不为零，V 就能继续学习。",
                en="The path to V bypasses softmax's derivative: the output is weights times V, so while the weights are not zero, V keeps learning.",
            )
        },
        only_if=Text(zh="说的是 Q 和 K；V 仍会得到更新", en="it is about Q and K; V still gets updates"),
    )
