"""With and without 1/√d: worked examples, random scores, and what the paper says, from range to weights to slope."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.lane_diagram import diagram
from softscope.experiments.ledger import paper
from softscope.experiments.table import Cell, Column, Measured, Table, label, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="What does dividing by √d do to the range of the scores, to the weights and to their slope?",
    zh="除以 √d 之后，分数的范围、权重和权重的斜率各有什么变化？",
)
SECONDS = 2.0
Array = np.ndarray[Any, Any]

D, KEYS = 64, 10
LENGTHS = (4, 16, 64, 256)
SMALL = 0.01  # a row with Σ s(1−s) below this passes almost no gradient
TAIL = 0.00135  # what a normal distribution leaves beyond three standard deviations, on each side
LANES = {"unscaled": Text(en="unscaled", zh="不缩放"), "scaled": Text(en="divided by √d", zh="除以 √d")}


def measure(
    progress: ProgressBar, *, seed: int = 0, runs: int = 400, samples: int = 100_000, lengths: tuple[int, ...] = LENGTHS
) -> tuple[list[Table], list[Text]]:
    """Work through two rows of scores, then draw q and k of unit variance."""
    rng = np.random.default_rng(seed)
    blow_up, five = example("blow_up", (-30.0, 60.0, -10.0), 512), example("five", (-24.0, -10.0, 0.0, 10.0, 24.0), 64)
    lanes = _lanes(rng, runs)
    progress(0.3)
    ranges = _ranges(progress, rng, runs, lengths)
    quoted = _quoted(rng, samples)
    notes = [_worked(blow_up, 512), _worked(five, 64), _measured(lanes), _spanned(ranges), *_cited(quoted)]
    return [blow_up, five, lanes, ranges, quoted], notes


def example(key: str, scores: tuple[float, ...], d: int) -> Table:
    """Take a row of scores to its exponentials, weights and slopes, before and after dividing by √d."""
    before = np.array(scores)
    after = before / math.sqrt(d)
    columns = [part for x in (before, after) for part in (x, np.exp(x), *_weights_and_slopes(x))]
    row = _listed(scores)
    return Table(
        key,
        Text(
            en=f"The scores {row}, divided by √{d} = {math.sqrt(d):.4g}",
            zh=f"分数 {row}，除以 √{d} = {math.sqrt(d):.4g}",
        ),
        (
            label("score", Text(en="score x", zh="分数 x")),
            Column("exp", same("e^x")),
            Column("weight", Text(en="weight s", zh="权重 s")),
            Column("slope", same("s(1−s)"), digits=2),
            Column("scaled", same("x/√d")),
            Column("scaled_exp", same("e^(x/√d)")),
            Column("scaled_weight", Text(en="weight, scaled", zh="缩放后的权重")),
            Column("scaled_slope", Text(en="s(1−s), scaled", zh="缩放后的 s(1−s)"), digits=2),
        ),
        [tuple(float(cell) for cell in cells) for cells in zip(*columns, strict=True)],
    )


def _listed(scores: Sequence[float]) -> str:
    return "[" + ", ".join(f"{x:g}" for x in scores) + "]"


def _weights_and_slopes(x: Array) -> tuple[Array, Array]:
    weights = softscope.softmax(x)
    return weights, np.diagonal(softscope.jacobian(weights))


def _lanes(rng: np.random.Generator, runs: int) -> Table:
    """Follow random scores at d = 64 down both lanes."""
    q, k = rng.standard_normal((2, runs, KEYS, D))
    dots = q @ k.swapaxes(-1, -2)
    rows: list[tuple[Cell, ...]] = []
    for lane, x in (("unscaled", dots), ("scaled", dots / math.sqrt(D))):
        state = softscope.partition(x)
        low, high = np.quantile(x, (TAIL, 1.0 - TAIL))
        trace = state.jacobian_trace
        flat = Measured.of((trace < SMALL).mean(axis=-1))
        peak = Measured.of(state.peak.mean(axis=-1))
        rows.append((LANES[lane], float(low), float(high), peak, float(np.median(trace)), flat, runs))
    return Table(
        "lanes",
        Text(
            en=f"Two lanes: q·k of {KEYS} queries and {KEYS} keys with unit variance, d = {D}",
            zh=f"两条路：{KEYS} 个查询与 {KEYS} 个键的 q·k，方差为 1，d = {D}",
        ),
        (
            label("lane", Text(en="lane", zh="路线")),
            Column("low", Text(en="99.7% of the scores: from", zh="99.7% 的分数：从")),
            Column("high", Text(en="to", zh="到")),
            Column("peak", Text(en="largest weight", zh="最大权重")),
            Column("trace", Text(en="median Σ s(1−s)", zh="Σ s(1−s) 的中位数")),
            Column("flat", Text(en=f"rows with Σ s(1−s) < {SMALL:g}", zh=f"Σ s(1−s) < {SMALL:g} 的行")),
            Column("runs", Text(en=f"runs of {KEYS} rows", zh=f"运行次数（每次 {KEYS} 行）")),
        ),
        rows,
    )


def _ranges(progress: ProgressBar, rng: np.random.Generator, runs: int, lengths: tuple[int, ...]) -> Table:
    """Find the smallest and the largest entry of Q·Kᵀ for sequences of n tokens."""
    rows: list[tuple[Cell, ...]] = []
    for n in progress.through(lengths, 0.3, 0.9):
        few = max(20, runs * 16 // n) if n > 16 else runs
        ends = []
        for _ in range(few):
            q, k = rng.standard_normal((2, n, D))
            dots = q @ k.T
            ends.append((dots.min(), dots.max(), np.mean(dots**2)))
        for name, by in ((same("Q·Kᵀ"), 1.0), (same(f"Q·Kᵀ/√{D}"), math.sqrt(D))):
            low, high, square = np.array(ends).T / np.array([[by], [by], [by**2]])
            rows.append((name, n, *map(Measured.of, (low, high, square)), few))
    return Table(
        "range",
        Text(en=f"Range of Q·Kᵀ for n tokens, d = {D}", zh=f"n 个词元的 Q·Kᵀ 的范围，d = {D}"),
        (
            label("scores", Text(en="scores", zh="分数")),
            label("n", same("n")),
            Column("lowest", Text(en="smallest", zh="最小")),
            Column("highest", Text(en="largest", zh="最大")),
            Column("square", Text(en="mean square", zh="平方的均值")),
            Column("runs", Text(en="matrices", zh="矩阵个数")),
        ),
        rows,
    )


def _quoted(rng: np.random.Generator, samples: int) -> Table:
    """Put the paper's Table 3 (B) beside what its footnote says about q·k, measured at the same d_k."""
    rows: list[tuple[Cell, ...]] = []
    for d, (perplexity, bleu) in paper.TABLE_3_ROWS_B.items():
        dots = np.einsum("nd,nd->n", *rng.standard_normal((2, samples, d)))
        spread = Measured.of((dots - dots.mean()) ** 2)
        rows.append((d, perplexity, bleu, Measured.of(dots), spread, samples))
    return Table(
        "paper",
        Text(
            en=f"Quoted, not measured: Table 3, base and rows (B), of {paper.NAME}. Measured: its footnote "
            f"{paper.FOOTNOTE_NUMBER}",
            zh=f"引用，非实测：{paper.NAME} 表 3 的 base 行和 (B) 行。实测：它的脚注 {paper.FOOTNOTE_NUMBER}",
        ),
        (
            label("d", same("d_k")),
            Column("perplexity", Text(en="perplexity (quoted)", zh="困惑度（引用）")),
            Column("bleu", Text(en="BLEU (quoted)", zh="BLEU（引用）")),
            Column("mean", Text(en="mean of q·k (measured)", zh="q·k 的均值（实测）"), digits=2),
            Column("variance", Text(en="variance of q·k (measured)", zh="q·k 的方差（实测）")),
            Column("samples", Text(en="samples", zh="样本数")),
        ),
        rows,
    )


def _worked(table: Table, d: int) -> Text:
    """Say what happened to the largest score of an example."""
    top = max(table.records(), key=lambda r: r["score"])
    row = _listed(table.column("score"))
    scaled, weights, slopes = (
        "[" + ", ".join(shown(r[key], "en", digits) for r in table.records()) + "]"
        for key, digits in (("scaled", 3), ("scaled_weight", 2), ("scaled_slope", 2))
    )
    left = max(r["slope"] for r in table.records())
    return Text(
        en=f"{row}: e^{top['score']:g} = {top['exp']:.2g} takes almost all the weight, and the largest s(1−s) is "
        f"{left:.1e}. Divided by √{d} = {math.sqrt(d):.4g}, the scores are {scaled}, the weights {weights} and s(1−s) "
        f"{slopes}: the slopes are back, yet the largest weight is still {top['scaled_weight']:.2f}.",
        zh=f"{row}：e^{top['score']:g} = {top['exp']:.2g} 占去几乎全部权重，最大的 s(1−s) 为 {left:.1e}。除以 √{d} = "
        f"{math.sqrt(d):.4g} 之后，分数为 {scaled}，权重为 {weights}，s(1−s) 为 {slopes}：斜率回来了，但最大权重仍有 "
        f"{top['scaled_weight']:.2f}。",
    )


def _measured(lanes: Table) -> Text:
    plain, scaled = lanes.records()
    return Text(
        en=f"Random scores at d = {D}, unscaled: 99.7% lie in [{plain['low']:.1f}, {plain['high']:.1f}], the largest "
        f"weight is {plain['peak'].value:.2f} on average, and {plain['flat'].value:.0%} of the rows have Σ s(1−s) "
        f"below {SMALL:g}. Scaled: [{scaled['low']:.2f}, {scaled['high']:.2f}], {scaled['peak'].value:.2f} and "
        f"{scaled['flat'].value:.0%}.",
        zh=f"d = {D} 的随机分数，不缩放时：99.7% 落在 [{plain['low']:.1f}, {plain['high']:.1f}] 内，最大权重平均为 "
        f"{plain['peak'].value:.2f}，{plain['flat'].value:.0%} 的行 Σ s(1−s) 低于 {SMALL:g}。缩放后："
        f"[{scaled['low']:.2f}, {scaled['high']:.2f}]、{scaled['peak'].value:.2f} 和 {scaled['flat'].value:.0%}。",
    )


def _spanned(ranges: Table) -> Text:
    few, many = (
        [r for r in ranges.records() if r["n"] == n] for n in (min(ranges.column("n")), max(ranges.column("n")))
    )

    def span(r: dict[str, Any]) -> str:
        return f"[{r['lowest'].value:.2f}, {r['highest'].value:.2f}]"

    return Text(
        en=f"Q·Kᵀ at d = {D} spans {span(few[0])} for {few[0]['n']} tokens and {span(many[0])} for {many[0]['n']}; "
        f"divided by √{D}, {span(few[1])} and {span(many[1])}. More tokens reach further into the tails; the mean "
        f"square, {shown(few[0]['square'])} and {shown(many[0]['square'])}, does not grow.",
        zh=f"d = {D} 时，{few[0]['n']} 个词元的 Q·Kᵀ 范围为 {span(few[0])}，{many[0]['n']} 个时为 {span(many[0])}；除"
        f"以 √{D} 后为 {span(few[1])} 和 {span(many[1])}。词元多了，会更深入尾部；平方的均值为 "
        f"{shown(few[0]['square'])} 和 {shown(many[0]['square'])}，并不增大。",
    )


def _cited(quoted: Table) -> list[Text]:
    first, *_, last = quoted.records()
    return [
        Text(
            en=f"Quoted, footnote {paper.FOOTNOTE_NUMBER} on page {paper.FOOTNOTE_PAGE} of the paper: "
            f"“{paper.FOOTNOTE}” Measured at d_k = {first['d']}: mean {first['mean'].value:.2f}, variance "
            f"{first['variance'].value:.1f}.",
            zh=f"引文，论文第 {paper.FOOTNOTE_PAGE} 页脚注 {paper.FOOTNOTE_NUMBER}：“{paper.FOOTNOTE}” "
            f"d_k = {first['d']} 时实测：均值 {first['mean'].value:.2f}，方差 {first['variance'].value:.1f}。",
        ),
        Text(
            en=f"Quoted, Table 3 (B): BLEU falls from {first['bleu']} at d_k = {first['d']} to {last['bleu']} at d_k = "
            f"{last['d']}. The table has {paper.TABLE_3_UNSCALED_ROWS} unscaled rows, so it cannot say what the scale "
            f"is worth.",
            zh=f"引用，表 3 的 (B) 行：BLEU 从 d_k = {first['d']} 时的 {first['bleu']} 降到 d_k = {last['d']} 时的 "
            f"{last['bleu']}。表中有 {paper.TABLE_3_UNSCALED_ROWS} 行不缩放，因此看不出缩放有多大作用。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Draw the two lanes, the slopes of the two examples, the weights of the second, and the range of Q·Kᵀ."""
    panels = [
        _panel(result["blow_up"], lang, "slope", Text(en="{}: slopes", zh="{}：斜率")),
        _panel(result["five"], lang, "slope", Text(en="{}: slopes", zh="{}：斜率")),
        _panel(result["five"], lang, "weight", Text(en="{}: weights", zh="{}：权重")),
        _extremes(result["range"], lang),
    ]
    return chart.beside(diagram(result["lanes"], SMALL, lang), chart.beside(*panels), columns=1)


def _panel(table: Table, lang: Lang, key: str, title: Text) -> Any:
    rows = [
        {"score": r["score"], "name": name.of(lang), key: r[("" if lane == "unscaled" else "scaled_") + key]}
        for lane, name in LANES.items()
        for r in sorted(table.records(), key=lambda r: r["score"])
    ]
    slope = chart.Axis(key, "s(1−s)", log=True)
    weight = chart.Axis(key, Text(en="weight s", zh="权重 s").of(lang), domain=(0.0, 1.0))
    return chart.curves(
        rows,
        chart.Axis("score", Text(en="score before scaling", zh="缩放前的分数").of(lang)),
        slope if key == "slope" else weight,
        ("name", ""),
        title=title.format(_listed(table.column("score"))).of(lang),
    )


def _extremes(ranges: Table, lang: Lang) -> Any:
    rows = [
        {"n": r["n"], "name": f"{short}{end.of(lang)}", "value": r[key].value}
        for name, short in zip(dict.fromkeys(ranges.column("scores")), ("q·k", f"q·k/√{D}"), strict=True)
        for key, end in (("highest", Text(en=", largest", zh="，最大")), ("lowest", Text(en=", smallest", zh="，最小")))
        for r in ranges.records()
        if r["scores"] == name
    ]
    return chart.curves(
        rows,
        chart.Axis("n", Text(en="tokens n", zh="词元个数 n").of(lang), log=True, values=LENGTHS),
        chart.Axis("value", Text(en="mean extreme score", zh="极端分数的均值").of(lang)),
        ("name", ""),
        title=Text(en=f"Range of the scores, d = {D}", zh=f"分数的范围，d = {D}").of(lang),
    )
