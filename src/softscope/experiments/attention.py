"""Attention step by step on a 3×4 example: scores, scaled scores, weights, output; and the axis softmax works along."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text
from softscope.experiments import chart
from softscope.experiments.table import Cell, Column, Table, label, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="What happens at each step of attention, and along which axis must softmax work?",
    zh="注意力的每一步发生了什么？softmax 必须沿哪个轴计算？",
)
SECONDS = 0.5
Array = np.ndarray[Any, Any]

STEPS = {
    "scores": Text(en="1. scores q·k", zh="1. 分数 q·k"),
    "scaled": Text(en="2. scaled q·k/√d", zh="2. 缩放 q·k/√d"),
    "weights": Text(en="3. softmax weights", zh="3. softmax 权重"),
}
QUERY = Text(en="query", zh="查询")


def rows_to_weights(x: Array, *, axis: int | None = -1, keepdims: bool = True) -> Array:
    """Shift by the maximum, take exponentials and divide by their sum: the step as people write it by hand."""
    e = np.exp(x - x.max(axis=axis, keepdims=keepdims))
    return np.asarray(e / e.sum(axis=axis, keepdims=keepdims))


def measure(progress: ProgressBar, *, seed: int = 0, tokens: int = 3, d: int = 4) -> tuple[list[Table], list[Text]]:
    """Draw Q, K and V from a normal distribution and take them through attention one step at a time."""
    q, k, v = np.random.default_rng(seed).standard_normal((3, tokens, d))
    scores = q @ k.T
    scaled = scores / math.sqrt(d)
    weights = softscope.softmax(scaled, axis=-1)
    output = weights @ v
    library = softscope.attention(q[None], k[None], v[None])[0]
    progress(0.5)
    steps = _steps({"scores": scores, "scaled": scaled, "weights": weights})
    outputs = _output(output, library)
    axes = _axes(scaled, np.concatenate([scaled, scaled[:, :1]], axis=1))
    return [steps, outputs, axes], _notes(steps, outputs, axes, d)


def _steps(matrices: dict[str, Array]) -> Table:
    keys = len(matrices["scores"])
    rows: list[tuple[Cell, ...]] = [
        (STEPS[step], i + 1, *map(float, row), float(row.sum()))
        for step, x in matrices.items()
        for i, row in enumerate(x)
    ]
    return Table(
        "steps",
        Text(en=f"From scores to weights: {keys} queries, {keys} keys", zh=f"从分数到权重：{keys} 个查询、{keys} 个键"),
        (
            label("step", Text(en="step", zh="步骤")),
            label("query", QUERY),
            *(Column(f"key_{j + 1}", Text(en=f"key {j + 1}", zh=f"键 {j + 1}")) for j in range(keys)),
            Column("sum", Text(en="row sum", zh="行和")),
        ),
        rows,
    )


def _output(output: Array, library: Array) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (i + 1, *map(float, row), float(np.abs(row - wanted).max()))
        for i, (row, wanted) in enumerate(zip(output, library, strict=True))
    ]
    n, d = output.shape
    return Table(
        "output",
        Text(en=f"4. The output, weights times V, of shape ({n}, {d})", zh=f"4. 输出：权重乘以 V，形状 ({n}, {d})"),
        (
            label("query", QUERY),
            *(Column(f"part_{j + 1}", Text(en=f"part {j + 1}", zh=f"分量 {j + 1}")) for j in range(d)),
            Column("difference", Text(en="off softscope.attention by", zh="与 softscope.attention 之差"), digits=1),
        ),
        rows,
    )


CASES: dict[str, tuple[int | None, bool]] = {
    "axis=-1, keepdims=True": (-1, True),
    "axis=-1, keepdims=False": (-1, False),
    "axis=0, keepdims=True": (0, True),
    "axis=None": (None, True),
}


def _axes(square: Array, wide: Array) -> Table:
    """Compare ways of writing the softmax step on a square matrix of scores and on one with an extra key."""
    wanted = softscope.softmax(square, axis=-1)
    rows: list[tuple[Cell, ...]] = []
    for name, (axis, keepdims) in CASES.items():
        found = rows_to_weights(square, axis=axis, keepdims=keepdims)
        sums = [_between(found.sum(axis=along)) for along in (-1, 0)]
        shape = str(square.max(axis=axis, keepdims=keepdims).shape)
        rows.append((name, shape, *sums, float(np.abs(found - wanted).max()), _outcome(wide, axis, keepdims)))
    return Table(
        "axis",
        Text(en="The softmax step written four ways", zh="softmax 这一步的四种写法"),
        (
            label("written", Text(en="sum and maximum with", zh="求和与最大值的参数")),
            Column("shape", Text(en="shape of the sum", zh="总和的形状")),
            Column("rows", Text(en="row sums", zh="行和")),
            Column("columns", Text(en="column sums", zh="列和")),
            Column("difference", Text(en="off softscope.softmax by", zh="与 softscope.softmax 之差"), digits=2),
            Column("wide", Text(en="{}×{} scores", zh="{}×{} 的分数").format(*wide.shape)),
        ),
        rows,
    )


def _between(sums: Array) -> str:
    low, high = float(sums.min()), float(sums.max())
    return f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f}…{high:.3f}"


def _outcome(x: Array, axis: int | None, keepdims: bool) -> Text:
    """Run the step on scores that are not square, and say whether it fails, sums to 1 along rows, or does not."""
    try:
        found = rows_to_weights(x, axis=axis, keepdims=keepdims)
    except ValueError:
        return Text(en="error", zh="报错")
    right = np.allclose(found, softscope.softmax(x, axis=-1))
    return Text(en="right", zh="正确") if right else Text(en="wrong", zh="错误")


def _notes(steps: Table, outputs: Table, axes: Table, d: int) -> list[Text]:
    def spread(step: str) -> float:
        rows = [_parts(r, "key_") for r in steps.records() if r["step"] == STEPS[step]]
        return max(max(row) - min(row) for row in rows)

    sums = [r["sum"] for r in steps.records() if r["step"] == STEPS["weights"]]
    off = max(outputs.column("difference"))
    lost = axes.row(written="axis=-1, keepdims=False")
    return [
        Text(
            en=f"Divided by √{d} = {math.sqrt(d):g}, the widest row of scores shrinks from {spread('scores'):.2f} to "
            f"{spread('scaled'):.2f}; its order stays.",
            zh=f"除以 √{d} = {math.sqrt(d):g} 之后，最宽的一行分数从 {spread('scores'):.2f} 缩到 "
            f"{spread('scaled'):.2f}，顺序不变。",
        ),
        Text(
            en=f"Each row of weights sums to 1 (at most {max(abs(s - 1.0) for s in sums):.1g} off), and the output, "
            f"taken step by step, differs from softscope.attention by at most {off:.1g}.",
            zh=f"每行权重之和为 1（最多差 {max(abs(s - 1.0) for s in sums):.1g}）；一步一步算出的输出与 "
            f"softscope.attention 最多相差 {off:.1g}。",
        ),
        Text(
            en=f"Without keepdims, a square matrix is divided along the wrong axis and nothing complains: its rows "
            f"sum to {lost['rows']}, and weights are off by up to {lost['difference']:.2f}. On scores that are not "
            f"square the outcome is: {lost['wide'].en}.",
            zh=f"不写 keepdims，方阵会沿错误的轴相除，却不报错：行和为 {lost['rows']}，权重最多差 "
            f"{lost['difference']:.2f}。分数不是方阵时：{lost['wide'].zh}。",
        ),
    ]


def _parts(row: dict[str, Any], prefix: str) -> list[float]:
    return [value for key, value in row.items() if key.startswith(prefix)]


def draw(result: Result, lang: Lang) -> Any:
    """Draw the matrix of each step with its numbers."""
    return chart.beside(*_matrices(result, lang))


def _matrices(result: Result, lang: Lang) -> Iterator[Any]:
    import altair as alt

    # Colours reach beyond the numbers, so that the figures stay readable in the darkest cell.
    most = 1.6 * max(abs(x) for r in result["steps"].records() for x in _parts(r, "key_"))
    for step, name in STEPS.items():
        rows = [r for r in result["steps"].records() if r["step"] == name]
        scale = (
            alt.Scale(scheme="oranges", domain=[0.0, 1.6])
            if step == "weights"
            else alt.Scale(scheme="blueorange", domain=[-most, most])
        )
        yield _matrix(rows, "key_", scale, Text(en="key", zh="键"), name, lang)
    rows = result["output"].records()
    most = 1.6 * max(abs(x) for r in rows for x in _parts(r, "part_"))
    scale = alt.Scale(scheme="blueorange", domain=[-most, most])
    title = Text(en="4. output: weights times V", zh="4. 输出：权重乘以 V")
    yield _matrix(rows, "part_", scale, Text(en="part", zh="分量"), title, lang)


def _matrix(rows: list[dict[str, Any]], prefix: str, scale: Any, across: Text, title: Text, lang: Lang) -> Any:
    import altair as alt

    cells = [
        {"i": r["query"], "j": j + 1, "value": x, "text": shown(x, lang)}
        for r in rows
        for j, x in enumerate(_parts(r, prefix))
    ]
    colour = alt.Color("value:Q", legend=None, scale=scale)
    return chart.heat(cells, ("j", across.of(lang)), ("i", QUERY.of(lang)), colour, title=title.of(lang), width=240)
