"""What do weights mean? Read them as shares, look for an exact 0, and see what a negative one does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.table import Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="Can attention weights be read as percentages, and what if one is 0, or negative?",
    zh="注意力权重能读成百分比吗？有一个为 0 或为负，又会怎样？",
)
SECONDS = 0.5
Array = np.ndarray[Any, Any]

SHARES = (0.1, 0.7, 0.2, 0.0)
SCORES = (0.8, -0.3, 0.5)  # they add up to 1, so that x/Σx leaves them as they are
VALUES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def _linear(x: Any) -> Array:
    row = np.asarray(x)
    return np.asarray(row / row.sum())


SIMPLEX: dict[Text, Callable[[Any], Any]] = {
    same("softmax"): softscope.softmax,
    same("entmax 1.5"): softscope.entmax,
    same("sparsemax"): softscope.sparsemax,
}
LINEAR = same("x/Σx")


def measure(progress: ProgressBar, *, seed: int = 0, samples: int = 20_000) -> tuple[list[Table], list[Text]]:
    """Invert a row of shares, sample from it, push one score down, and mix values with a negative weight."""
    shares = _shares(np.random.default_rng(seed), samples)
    progress(0.5)
    zero, negative = _zero(), _negative()
    return [shares, zero, negative, _fade()], _notes(shares, zero, negative)


def _shares(rng: np.random.Generator, samples: int) -> Table:
    """Read [0.1, 0.7, 0.2, 0.0] token by token: the scores are its logarithms, so the last one is −∞."""
    wanted = np.array(SHARES)
    scores = np.log(wanted, where=wanted > 0.0, out=np.full(len(wanted), -math.inf))
    weights = softscope.softmax(scores)
    drawn = softscope.sample(np.tile(scores, (samples, 1)), rng=rng)
    rows: list[tuple[Cell, ...]] = [
        (i + 1, wanted[i], f"{weights[i]:.0%}", float(scores[i]), float(weights[i]), Measured.of(drawn == i), samples)
        for i in range(len(wanted))
    ]
    row = "[" + ", ".join(f"{share:.1f}" for share in SHARES) + "]"
    return Table(
        "shares",
        Text(en=f"Weights {row} read token by token", zh=f"逐个词元读权重 {row}"),
        (
            label("token", Text(en="token", zh="词元")),
            Column("weight", Text(en="weight", zh="权重"), digits=1),
            Column("percent", Text(en="attention", zh="注意力")),
            Column("score", Text(en="score that gives it", zh="对应的分数")),
            Column("softmax", Text(en="softmax of the scores", zh="这些分数的 softmax"), digits=2),
            Column("drawn", Text(en="share of draws", zh="抽中的比例")),
            Column("samples", Text(en="draws", zh="抽样次数")),
        ),
        rows,
    )


def _zero() -> Table:
    """Find how far the fourth score must lie below the largest for its weight to look like 0, or to be 0."""
    rows: list[tuple[Cell, ...]] = []
    for places in (1, 2, 4):
        name = Text(en=f"softmax, decimals printed: {places}", zh=f"softmax，印 {places} 位小数")
        rows.append((name, *_first(softscope.softmax, np.float64, 0.5 * 10.0**-places)))
    for dtype in (np.float16, np.float32, np.float64):
        name = Text(en=f"softmax, underflow in {dtype.__name__}", zh=f"softmax，在 {dtype.__name__} 中下溢")
        rows.append((name, *_first(softscope.softmax, dtype, 0.0)))
    for map_name, f in list(SIMPLEX.items())[1:]:
        name = Text(en="{}, exactly", zh="{}，恰好").format(map_name)
        rows.append((name, *_first(f, np.float64, 0.0)))
    return Table(
        "zero",
        Text(en="When is the fourth weight 0?", zh="第四个权重什么时候是 0？"),
        (
            label("case", Text(en="its weight is 0 in", zh="权重为 0 的情形")),
            Column("gap", Text(en="gap to the largest score", zh="与最大分数的差距")),
            Column("power", Text(en="log₁₀ of softmax's weight there", zh="该处 softmax 权重的 log₁₀")),
        ),
        rows,
    )


def _fade() -> Table:
    """Follow the fourth weight as its score falls."""
    rows: list[tuple[Cell, ...]] = [
        (name, float(gap), float(f(_row(gap))[-1])) for name, f in SIMPLEX.items() for gap in np.linspace(0.0, 6.0, 121)
    ]
    return Table(
        "fade",
        Text(en="Of the three, only softmax never reaches 0", zh="三者之中，只有 softmax 到不了 0"),
        (
            label("map", Text(en="map", zh="映射")),
            label("gap", Text(en="gap to the largest score", zh="与最大分数的差距")),
            Column("weight", Text(en="fourth weight", zh="第四个权重")),
        ),
        rows,
        dense=True,
    )


def _first(f: Callable[[Any], Any], dtype: Any, most: float) -> tuple[float, float]:
    """Bisect for the smallest gap at which the last weight is at most `most`, and give log₁₀ of softmax there."""

    def last(gap: float) -> float:
        return float(f(_row(gap).astype(dtype))[-1])

    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if last(middle) <= most else (middle, high)
    # The logarithm, because the weight itself may be below the smallest float.
    return high, float(softscope.log_softmax(_row(high))[-1]) / math.log(10.0)


def _row(gap: float) -> Array:
    """Return the scores of the first three tokens, and one that lies `gap` below the largest."""
    scores = np.log(SHARES[:-1])
    return np.append(scores, scores.max() - gap)


def _negative() -> Table:
    """Mix three values with the weights that each map makes of the same scores, one of them negative."""
    rows: list[tuple[Cell, ...]] = []
    for name, f in {LINEAR: _linear, **SIMPLEX}.items():
        alpha = f(np.array(SCORES))
        output = alpha @ VALUES
        # The values span a triangle, so the weights are the only way to write the output as a mixture of them.
        inside = bool(np.all(_mixture(output) > -1e-12))
        rows.append((name, *map(float, alpha), float(np.abs(alpha).sum()), *map(float, output), inside))
    scores = "[" + ", ".join(f"{x:g}" for x in SCORES) + "]"
    values = ", ".join(f"v{i} = ({x:g}, {y:g})" for i, (x, y) in zip("₁₂₃", VALUES, strict=True))
    return Table(
        "negative",
        Text(
            en=f"O = α₁v₁ + α₂v₂ + α₃v₃ for the scores {scores}, {values}",
            zh=f"O = α₁v₁ + α₂v₂ + α₃v₃，分数 {scores}，{values}",
        ),
        (
            label("map", Text(en="map", zh="映射")),
            *(Column(f"alpha_{i}", same(f"α{mark}")) for i, mark in ((1, "₁"), (2, "₂"), (3, "₃"))),
            Column("size", same("Σ|α|")),
            Column("x", same("O₁")),
            Column("y", same("O₂")),
            Column("inside", Text(en="between the values", zh="在各值之间")),
        ),
        rows,
    )


def _mixture(point: Array) -> Array:
    """Solve for the weights with sum 1 that mix the three values into a point."""
    system = np.vstack([VALUES.T, np.ones(len(VALUES))])
    return np.asarray(np.linalg.solve(system, np.append(point, 1.0)))


def _notes(shares: Table, zero: Table, negative: Table) -> list[Text]:
    seen, hidden = (zero.column(key) for key in ("gap", "power"))
    furthest = max(abs(r["drawn"].value - r["weight"]) / r["drawn"].error for r in shares.records() if r["weight"])
    linear, soft = negative.row(map=LINEAR.en), negative.row(map="softmax")
    read = [(r["token"], r["percent"]) for r in shares.records()]
    last = shares.records()[-1]
    return [
        Text(
            en="Read as shares, the weights give "
            + ", ".join(f"{percent} of the attention to token {token}" for token, percent in read)
            + f". They are probabilities: drawn {last['samples']} times, each token comes up as often as its weight "
            f"says (at most {furthest:.1f} standard errors off).",
            zh="按份额读，"
            + "，".join(f"词元 {token} 得到 {percent} 的注意力" for token, percent in read)
            + f"。它们就是概率：抽 {last['samples']} 次，各词元出现的频率与权重一致（最多差 {furthest:.1f} 个标准"
            f"误）。",
        ),
        Text(
            en=f"The 0.0 is rounding, or a mask: the fourth weight prints as 0.0 once its score lies {seen[0]:.2f} "
            f"below the largest, but softmax gives exactly 0 only for a score of −∞, or by underflow, in float64 at a "
            f"gap of {zero.row(case='softmax, underflow in float64')['gap']:.0f}.",
            zh=f"0.0 来自舍入或掩码：第四个分数比最大的低 {seen[0]:.2f} 时，它的权重就印成 0.0；但只有分数为 −∞，或者"
            f"下溢（float64 中差距为 {zero.row(case='softmax, underflow in float64')['gap']:.0f}）时，softmax 才给出恰"
            f"好的 0。",
        ),
        Text(
            en=f"entmax and sparsemax do give exact zeros, at gaps of {seen[-2]:.2f} and {seen[-1]:.2f}; softmax's "
            f"weight there is {10.0 ** hidden[-2]:.2f} and {10.0 ** hidden[-1]:.2f}.",
            zh=f"entmax 和 sparsemax 能给出恰好的 0，差距分别为 {seen[-2]:.2f} 和 {seen[-1]:.2f}；softmax 在那里的权重"
            f"为 {10.0 ** hidden[-2]:.2f} 和 {10.0 ** hidden[-1]:.2f}。",
        ),
        Text(
            en=f"With α₂ = {linear['alpha_2']:.1f}, v₂ is subtracted: O = ({linear['x']:.2f}, {linear['y']:.2f}) lies "
            f"outside the triangle of the values, and Σ|α| = {linear['size']:.1f} lets it grow beyond them. softmax "
            f"makes α₂ = {soft['alpha_2']:.2f} of the same scores, and O = ({soft['x']:.2f}, {soft['y']:.2f}) stays "
            f"inside.",
            zh=f"α₂ = {linear['alpha_2']:.1f} 时，v₂ 被减去：O = ({linear['x']:.2f}, {linear['y']:.2f}) 落在各值构成的"
            f"三角形之外，Σ|α| = {linear['size']:.1f} 使它可以超出各值。同样的分数，softmax 给出 α₂ = "
            f"{soft['alpha_2']:.2f}，O = ({soft['x']:.2f}, {soft['y']:.2f}) 留在里面。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Draw the triangle of the values with the outputs, the weight that fades, and the shares as bars."""
    shares = chart.bars(
        [{"token": str(r["token"]), "share": 100.0 * r["softmax"]} for r in result["shares"].records()],
        ("token", Text(en="token", zh="词元").of(lang)),
        chart.Axis("share", Text(en="attention (%)", zh="注意力（%）").of(lang)),
        digits=".0f",
        title=result["shares"].title.of(lang),
    )
    fade = chart.curves(
        [{**r, "map": r["map"].of(lang)} for r in result["fade"].records()],
        chart.Axis("gap", Text(en="gap to the largest score", zh="与最大分数的差距").of(lang)),
        chart.Axis("weight", Text(en="fourth weight", zh="第四个权重").of(lang), domain=(0.0, 0.5)),
        ("map", ""),
        title=result["fade"].title.of(lang),
        points=False,
    )
    return chart.beside(_triangle(result, lang), chart.beside(shares, fade, columns=1))


def _triangle(result: Result, lang: Lang) -> Any:
    import altair as alt

    centre = VALUES.mean(axis=0)
    corners = [
        {"x": x, "y": y, "name": name, "beside_x": beside_x, "beside_y": beside_y}
        for (x, y), (beside_x, beside_y), name in zip(
            VALUES.tolist(), (centre + 1.2 * (VALUES - centre)).tolist(), ("v₁", "v₂", "v₃"), strict=True
        )
    ]
    outputs = [
        {"x": r["x"], "y": r["y"], "name": f"O, {r['map'].of(lang)}: α₂ = {r['alpha_2']:.2f}"}
        for r in result["negative"].records()
    ]
    across, up = (
        alt.X("x:Q", title="O₁", scale=alt.Scale(domain=[-0.3, 1.5])),
        alt.Y("y:Q", title="O₂", scale=alt.Scale(domain=[-0.3, 1.2])),
    )
    edges = [{**corner, "order": i} for i, corner in enumerate([*corners, corners[0]])]
    kinds = [output["name"] for output in outputs]
    colour = alt.Color("name:N", sort=kinds, title=None, scale=alt.Scale(domain=kinds, range=chart.COLOURS[1:5]))
    shape = alt.Shape("name:N", sort=kinds, title=None, scale=alt.Scale(domain=kinds, range=chart.SHAPES[1:5]))
    base = alt.Chart(chart.data(outputs)).encode(x=across, y=up)
    values = alt.Chart(chart.data(corners)).encode(x=across, y=up)
    layers = [
        alt.Chart(chart.data(edges)).mark_line(color="#888", strokeWidth=1.5).encode(x=across, y=up, order="order:Q"),
        values.mark_point(filled=True, size=60, color="#000", opacity=1),
        values.mark_text(fontSize=13, fontWeight="bold").encode(x="beside_x:Q", y="beside_y:Q", text="name:N"),
        base.mark_point(filled=True, size=110, opacity=1).encode(color=colour, shape=shape),
    ]
    title = Text(en="A negative weight leaves the triangle", zh="负权重使输出离开三角形").of(lang)
    return alt.layer(*layers).properties(width=320, height=260, title=title)
