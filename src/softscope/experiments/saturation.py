"""When softmax saturates, how much of its derivative is left, and when does that matter?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart, cliff
from softscope.experiments.derivation import derived
from softscope.experiments.table import Cell, Column, Table, label, shown

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="When softmax saturates, how much of its derivative is left, and when does that matter?",
    zh="softmax 饱和时，导数还剩多少？什么时候会有影响？",
)
SECONDS = 1.5
NEEDS = ("sympy",)

GAPS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
MARGINS = (-50.0, -20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0, 50.0)
GAINS = (0.25, 1.0, 4.0)  # heat maps of softmax(gain·[0, 1, 2, 3])


def measure(progress: ProgressBar, *, seed: int = 0) -> tuple[list[Table], list[Text]]:
    """Compute derivatives at fixed inputs, and a symbolic proof; nothing is random."""
    del seed
    nudge, norms, heat, loss = _nudge(), _norms(), _heat(), _loss()
    wall, curve = cliff.tables()
    progress(0.1)
    proof = derived()
    wrong, right = loss.row(margin=-20.0), loss.row(margin=20.0)
    sharp = norms.row(gap=20.0)
    held = sum(proof.column("holds"))
    notes = [
        cliff.note(wall),
        Text(
            en=f"s(1−s) is at most 0.25, at s = 1/2. With n = 4 keys, ‖J‖ falls from {norms.rows[0][4]:.3f} at a gap "
            f"of 0 to {sharp['norm']:.1e} at a gap of 20, about {sharp['norm'] / sharp['rest']:.2f} times the weight "
            f"left over.",
            zh=f"s(1−s) 在 s = 1/2 处最大，为 0.25。n = 4 时，‖J‖ 从差距 0 处的 {norms.rows[0][4]:.3f} 降到差距 20 处"
            f"的 {sharp['norm']:.1e}，约为剩余权重的 {sharp['norm'] / sharp['rest']:.2f} 倍。",
        ),
        Text(
            en=f"It tends to 0 but is not 0: at [200, 250] the exact slope is "
            f"{nudge.row(logits='[200, 250]')['slope']:.1e}.",
            zh=f"它趋于 0，但不是 0：在 [200, 250] 处，精确斜率为 {nudge.row(logits='[200, 250]')['slope']:.1e}。",
        ),
        Text(
            en=f"∂s_i/∂z_j = s_i(δ_ij − s_j) is derived symbolically for n = 4: {held} of {len(proof.rows)} steps "
            f"hold.",
            zh=f"对 n = 4 作符号推导，得 ∂s_i/∂z_j = s_i(δ_ij − s_j)：{len(proof.rows)} 步中有 {held} 步成立。",
        ),
        Text(
            en=f"Saturation does no harm before a cross-entropy: for a confident wrong answer (margin −20) the "
            f"gradient is {wrong['cross_entropy']:.3f}, its largest, while s(1−s) is {wrong['slope']:.0e}; for a "
            f"confident right one it is {right['cross_entropy']:.0e}. A squared error on the weights would give almost "
            f"no gradient at either end ({wrong['squared']:.0e}).",
            zh=f"后面接交叉熵时，饱和无害：错得很自信时（间隔 −20），梯度为 {wrong['cross_entropy']:.3f}，正是最大值，"
            f"而 s(1−s) 只有 {wrong['slope']:.0e}；对得很自信时，梯度为 {right['cross_entropy']:.0e}。"
            f"若改用权重的平方误差，两端都几乎没有梯度（{wrong['squared']:.0e}）。",
        ),
    ]
    return [wall, nudge, norms, loss, proof, heat, curve], notes


def _nudge() -> Table:
    """Measure the effect of adding 0.1 to the first logit."""
    rows: list[tuple[Cell, ...]] = []
    for x in ((2.0, 2.5), (200.0, 200.5), (200.0, 250.0)):
        weights = softscope.softmax(np.array(x))
        moved = softscope.softmax(np.array([x[0] + 0.1, x[1]]))
        slope = float(softscope.jacobian(weights)[0, 0])
        rows.append(
            (f"[{x[0]:g}, {x[1]:g}]", float(weights[0]), float(weights[1]), float(moved[0] - weights[0]), slope)
        )
    return Table(
        "nudge",
        Text(en="Smooth and sharp: effect of +0.1 on the first logit", zh="平滑与尖锐：第一个分数加 0.1 会怎样"),
        (
            label("logits", Text(en="logits", zh="分数")),
            Column("first", same("s₁"), digits=3),
            Column("second", same("s₂"), digits=3),
            Column("moved", Text(en="change in s₁", zh="s₁ 的变化"), digits=3),
            Column("slope", same("s₁(1−s₁)"), digits=3),
        ),
        rows,
    )


def _norms() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for gap in GAPS:
        x = np.array([gap, 0.0, 0.0, 0.0])
        state, weights = softscope.partition(x), softscope.softmax(x)
        norm = float(np.linalg.norm(softscope.jacobian(weights)))
        rest = 3.0 * math.exp(-gap) / (1.0 + 3.0 * math.exp(-gap))
        rows.append((gap, float(weights[0]), rest, float(weights[0] * rest), norm, float(state.jacobian_trace)))
    return Table(
        "norms",
        Text(en="softmax([gap, 0, 0, 0]) approaching one-hot", zh="softmax([差距, 0, 0, 0]) 趋近 one-hot"),
        (
            label("gap", Text(en="gap", zh="差距")),
            Column("peak", Text(en="largest weight s", zh="最大权重 s"), digits=4),
            Column("rest", same("1−s"), digits=2),
            Column("slope", same("s(1−s)"), digits=3),
            Column("norm", same("‖J‖ (Frobenius)"), digits=3),
            Column("trace", Text(en="trace of J", zh="J 的迹"), digits=3),
        ),
        rows,
    )


def _heat() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for gain in GAINS:
        jacobian = softscope.jacobian(softscope.softmax(gain * np.arange(4.0)))
        rows += [(gain, i + 1, j + 1, float(jacobian[i, j])) for i in range(4) for j in range(4)]
    return Table(
        "jacobian",
        Text(en="Jacobian of softmax at k·[0, 1, 2, 3]", zh="softmax 在 k·[0, 1, 2, 3] 处的雅可比矩阵"),
        (label("gain", same("k")), label("i", same("i")), label("j", same("j")), Column("value", same("∂s_i/∂z_j"))),
        rows,
        dense=True,
    )


def _loss() -> Table:
    """Compute the gradients at the two logits (margin, 0) when the first is the target."""
    rows: list[tuple[Cell, ...]] = []
    for margin in MARGINS:
        p = softscope.softmax(np.array([margin, 0.0]))
        rest = float(p[1])  # 1 − p of the target, without cancellation
        slope = float(p[0]) * rest
        # L = −log p: ∂L/∂z = p − y. L = (1−p)² + p₂²: ∂L/∂z = J·2(p − y), with J·(1, −1) = 2·slope·(1, −1).
        squared = np.linalg.norm(softscope.jacobian(p) @ (2.0 * np.array([-rest, rest])))
        rows.append((margin, float(p[0]), slope, math.sqrt(2.0) * rest, float(squared)))
    return Table(
        "loss",
        Text(
            en="Two classes: gradient at the logits against the target's margin",
            zh="两类：分数处的梯度随目标间隔的变化",
        ),
        (
            label("margin", Text(en="target margin", zh="目标的间隔")),
            Column("p", Text(en="target probability", zh="目标的概率"), digits=3),
            Column("slope", same("s(1−s)"), digits=2),
            Column("cross_entropy", Text(en="cross-entropy gradient", zh="交叉熵的梯度"), digits=3),
            Column("squared", Text(en="squared-error gradient", zh="平方误差的梯度"), digits=2),
        ),
        rows,
    )


def draw(result: Result, lang: Lang) -> Any:
    """Plot the cliff, the parabola, the Jacobian as heat maps, ‖J‖ → 0, and the losses' gradients."""
    parabola = [{"s": s, "slope": s * (1.0 - s), "name": "s(1−s)"} for s in np.linspace(0.0, 1.0, 51).tolist()]
    hill = chart.curves(
        parabola,
        chart.Axis("s", Text(en="weight s", zh="权重 s").of(lang), domain=(0.0, 1.0)),
        chart.Axis("slope", "s(1−s)", domain=(0.0, 0.27)),
        ("name", ""),
        title=Text(en="Slope of a weight in its own logit", zh="权重对自身分数的斜率").of(lang),
        points=False,
        width=220,
    )
    norm = [{"gap": r["gap"], "norm": r["norm"], "name": "‖J‖"} for r in result["norms"].records()]
    fall = chart.curves(
        norm,
        chart.Axis("gap", Text(en="gap of the largest logit", zh="最大分数领先的差距").of(lang)),
        chart.Axis("norm", Text(en="‖J‖ (Frobenius)", zh="‖J‖（Frobenius）").of(lang), log=True),
        ("name", ""),
        title=Text(en="n = 4: the Jacobian tends to 0", zh="n = 4：雅可比矩阵趋于 0").of(lang),
    )
    names = {
        "cross_entropy": Text(en="cross-entropy", zh="交叉熵"),
        "squared": Text(en="squared error", zh="平方误差"),
        "slope": same("s(1−s)"),
    }
    margins = [
        {"margin": r["margin"], "value": r[key], "name": name.of(lang)}
        for key, name in names.items()
        for r in result["loss"].records()
        if abs(r["margin"]) <= 10.0
    ]
    losses = chart.curves(
        margins,
        chart.Axis(
            "margin",
            Text(en="target margin (left: confidently wrong)", zh="目标的间隔（左端：错得很自信）").of(lang),
        ),
        chart.Axis("value", Text(en="gradient norm at the logits", zh="分数处的梯度范数").of(lang)),
        ("name", ""),
        title=Text(en="Saturation does no harm before a cross-entropy", zh="后面接交叉熵时，饱和无害").of(lang),
    )
    slopes = chart.beside(cliff.draw(result, lang), hill)
    return chart.beside(_maps(result, lang), slopes, chart.beside(fall, losses), columns=1)


def _maps(result: Result, lang: Lang) -> Any:
    import altair as alt

    maps = []
    for gain in GAINS:
        rows = [{**r, "text": shown(r["value"], lang, 2)} for r in result["jacobian"].records() if r["gain"] == gain]
        # Use one scale for all three, with white at 0, to make the fading visible.
        shade = alt.Color("value:Q", title="∂s_i/∂z_j", scale=alt.Scale(scheme="blueorange", domain=[-0.25, 0.25]))
        name = Text(en="Jacobian of softmax at {k}·[0, 1, 2, 3]", zh="softmax 在 {k}·[0, 1, 2, 3] 处的雅可比矩阵").of(
            lang
        )
        maps.append(chart.heat(rows, ("j", "j"), ("i", "i"), shade, title=name.format(k=f"{gain:g}")))
    return alt.hconcat(*maps, spacing=30)
