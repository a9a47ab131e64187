"""How sharp are attention weights at initialisation, and how do d, the number of keys and 1/√d change that?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed, part
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, label, shown

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="How sharp are attention weights for random q and k, and how do d and the number of keys matter?",
    zh="q、k 随机时，注意力权重有多尖锐？怎样随 d 和键数变化？",
)
SECONDS = 2.0

DIMENSIONS = (1, 4, 16, 64, 256, 1024)
KEYS = (10, 64, 512)
SCALES = {"unscaled": Text(en="without 1/√d", zh="不缩放"), "scaled": Text(en="with 1/√d", zh="缩放")}


def measure(
    progress: ProgressBar,
    *,
    seed: int = 0,
    runs: int = 400,
    dimensions: tuple[int, ...] = DIMENSIONS,
    keys: tuple[int, ...] = KEYS,
) -> tuple[list[Table], list[Text]]:
    """Run 10 queries over n keys. The queries in a run share their keys, so errors are over runs, not rows."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Cell, ...]] = []
    example: list[tuple[Cell, ...]] = []
    jobs = [(n, d) for n in keys for d in dimensions]
    for n, d in progress.through(jobs):
        some = max(20, runs * keys[0] // n)  # with more keys each row varies less, so fewer runs suffice
        q = rng.standard_normal((some, 1, 10, d))
        k = rng.standard_normal((some, 1, n, d))
        state = {
            name: softscope.attention_partition(q, k, scale=scale)
            for name, scale in (("unscaled", 1.0), ("scaled", None))
        }
        for name, made in state.items():
            by_run = [Measured.of(x.mean(axis=(1, 2))) for x in (made.entropy, made.peak, made.jacobian_trace)]
            rows.append((SCALES[name], n, d, *by_run, by_run[0].value / math.log(n), some))
        if n == 10:
            top = [Measured.of(made.peak.max(axis=(1, 2))) for made in state.values()]
            example.append((d, *top, some))
    rows.sort(key=lambda row: (row[1], str(row[0])))  # by keys, then by scale, then by d
    table = Table(
        "sharpness",
        Text(en="Mean over rows, random q and k", zh="q、k 随机时各行的均值"),
        (
            label("scale", Text(en="scale", zh="缩放")),
            label("keys", Text(en="keys n", zh="键数 n")),
            label("d", same("d")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS),
            Column("peak", Text(en="largest weight", zh="最大权重")),
            Column("trace", same("Σ s(1−s)")),
            Column("share", Text(en="entropy / ln n", zh="熵 / ln n")),
            Column("runs", Text(en="runs of 10 rows", zh="运行次数（每次 10 行）")),
        ),
        rows,
        dense=True,
    )
    few = keys[0]
    ten = crossed(
        part(table, "", lambda r: r["keys"] == few),
        "ten_keys",
        Text(en=f"Mean over rows of {few} keys, random q and k", zh=f"q、k 随机，{few} 个键，各行的均值"),
        down="d",
        across="scale",
        values=("entropy", "peak"),
        also=("runs",),
    )
    middle = dimensions[len(dimensions) // 2]
    more = crossed(
        part(table, "", lambda r: r["d"] == middle),
        "more_keys",
        Text(en=f"More keys, d = {middle}", zh=f"更多的键，d = {middle}"),
        down="keys",
        across="scale",
        values=("entropy", "share"),
        also=("runs",),
    )
    largest = Table(
        "largest",
        Text(en="Largest weight in a whole 10×10 table", zh="整张 10×10 权重表中的最大值"),
        (
            label("d", same("d")),
            Column("unscaled", SCALES["unscaled"]),
            Column("scaled", SCALES["scaled"]),
            Column("runs", Text(en="runs", zh="运行次数")),
        ),
        example,
    )
    return [ten, more, largest, table], _notes(table, largest)


def _notes(table: Table, largest: Table) -> list[Text]:
    n = table.column("keys")[0]
    few = {name.en: [r for r in table.records() if r["keys"] == n and r["scale"] == name] for name in SCALES.values()}
    plain, scaled = few["without 1/√d"], few["with 1/√d"]
    middle = [r for r in plain if r["d"] in (16, 64, 256)]
    listed = "/".join(f"{r['entropy'].value:.2f}" for r in middle)
    dims = "/".join(str(r["d"]) for r in middle)
    flat = [r["entropy"].value for r in scaled if r["d"] >= 16]
    last = largest.records()[-1]
    return [
        Text(
            en=f"With {n} keys, the unscaled entropy falls as d grows: {listed} nats at d = {dims}.",
            zh=f"{n} 个键、不缩放时，熵随 d 增大而下降：d = {dims} 时为 {listed} 奈特。",
        ),
        Text(
            en=f"With scaling it stays between {min(flat):.2f} and {max(flat):.2f} for d ≥ 16, below ln {n} = "
            f"{math.log(n):.2f}, which only uniform weights reach.",
            zh=f"缩放后，d ≥ 16 时熵保持在 {min(flat):.2f} 与 {max(flat):.2f} 之间，低于 ln {n} = {math.log(n):.2f}"
            f"（只有均匀权重才能达到）。",
        ),
        Text(
            en=f"At d = {last['d']}, the largest weight in a 10×10 table is {shown(last['unscaled'].value)} unscaled "
            f"and {last['scaled'].value:.2f} scaled.",
            zh=f"d = {last['d']} 时，10×10 权重表中的最大值：不缩放 {shown(last['unscaled'].value)}，缩放 "
            f"{last['scaled'].value:.2f}。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot entropy as a share of its maximum, and the largest weight, for each number of keys."""
    rows = [
        {
            "d": r["d"],
            "n": r["keys"],
            "name": f"n = {r['keys']}" + Text(en=", ", zh="，").of(lang) + r["scale"].of(lang),
            "share": r["share"],
            "peak": r["peak"].value,
        }
        for r in result["sharpness"].records()
    ]
    across = chart.Axis("d", "d", log=True, values=DIMENSIONS)
    entropy = chart.curves(
        rows,
        across,
        chart.Axis("share", Text(en="entropy / ln n", zh="熵 / ln n").of(lang), domain=(0.0, 1.0)),
        ("name", ""),
        title=Text(en="Entropy as a share of its maximum", zh="熵占其最大值的比例").of(lang),
    )
    peak = chart.curves(
        rows,
        across,
        chart.Axis("peak", Text(en="mean largest weight", zh="最大权重的均值").of(lang), domain=(0.0, 1.0)),
        ("name", ""),
        title=Text(en="Largest weight of a row", zh="一行中的最大权重").of(lang),
    )
    return chart.beside(entropy, peak)
