"""Additive, dot or scaled dot: how far do the logits spread, how sharp are the weights, and what does each cost?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.subprocess_timing import alone
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="Additive, dot or scaled dot product: how wide are the logits, how sharp the weights, at what cost?",
    zh="加性、点积还是缩放点积：分数有多分散，权重有多尖锐，代价多大？",
)
SECONDS = 3.0
Array = np.ndarray[Any, Any]

DIMENSIONS = (16, 64, 256, 1024)
KINDS = {
    "dot": Text(en="dot: q·k", zh="点积：q·k"),
    "scaled": Text(en="scaled: q·k/√d", zh="缩放：q·k/√d"),
    "additive": Text(en="additive, v ~ N(0, 1/h)", zh="加性，v ~ N(0, 1/h)"),
    "additive_unit": Text(en="additive, v ~ N(0, 1)", zh="加性，v ~ N(0, 1)"),
}
KEYS = 10


def logits(q: Array, k: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Score q (n, d) against k (m, d), giving (n, m); additive scores draw fresh weights with hidden width h = d."""
    d = q.shape[-1]
    w_q, w_k = rng.standard_normal((2, d, d)) / math.sqrt(d)
    additive = np.tanh((q @ w_q)[:, None] + (k @ w_k)[None]) @ rng.standard_normal(d)
    dot = q @ k.T
    return {"dot": dot, "scaled": dot / math.sqrt(d), "additive": additive / math.sqrt(d), "additive_unit": additive}


def measure(
    progress: ProgressBar, *, seed: int = 0, runs: int = 40, dimensions: tuple[int, ...] = DIMENSIONS, tokens: int = 64
) -> tuple[list[Table], list[Text]]:
    """Score random q and k of unit variance, then time n×n scores.

    Each run draws its own weights, so the standard errors are over runs.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[Cell, ...]] = []
    for d in progress.through(dimensions, 0.0, 0.4):
        rows += readings(d, runs if d <= 256 else max(8, runs // 4), rng)
    spreads = Table(
        "spread",
        Text(en=f"Scores over {KEYS} keys, unit-variance q and k", zh=f"{KEYS} 个键的分数，q、k 方差为 1"),
        (
            label("score", Text(en="score", zh="打分函数")),
            label("d", same("d")),
            Column("spread", Text(en="sd of a row", zh="一行的标准差")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS),
            Column("peak", Text(en="largest weight", zh="最大权重")),
            Column("trace", same("Σ s(1−s)")),
            Column("runs", Text(en="runs of 10 rows", zh="运行次数（每次 10 行）")),
        ),
        rows,
        dense=True,
    )
    by_d = [
        crossed(spreads, key, title, down="d", across="score", values=(value,), also=("runs",))
        for key, value, title in (
            ("width", "spread", Text(en=f"Standard deviation of {KEYS} scores", zh=f"{KEYS} 个分数的标准差")),
            ("sharpness", "entropy", Text(en=f"Entropy of {KEYS} weights", zh=f"{KEYS} 个权重的熵")),
        )
    ]
    cost = _cost(progress, seed, dimensions, tokens)
    fits = {kind: exponent(cost, f"{kind}_ms") for kind in ("dot", "additive")}
    return [*by_d, cost, spreads], _notes(spreads, cost, fits)


def readings(d: int, runs: int, rng: np.random.Generator) -> list[tuple[Cell, ...]]:
    """Measure each score's spread and sharpness; the spread is the root of the rows' mean unbiased variance."""
    kept: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for _ in range(runs):
        scores = logits(rng.standard_normal((KEYS, d)), rng.standard_normal((KEYS, d)), rng)
        for kind, row in scores.items():
            state = softscope.partition(row)
            read = (row.var(axis=-1, ddof=1), state.entropy, state.peak, state.jacobian_trace)
            kept[kind].append([float(reading.mean()) for reading in read])
    columns = {kind: list(zip(*kept[kind], strict=True)) for kind in KINDS}
    return [
        (name, d, Measured.root(columns[kind][0]), *(Measured.of(x) for x in columns[kind][1:]), runs)
        for kind, name in KINDS.items()
    ]


# Only the scores are timed: W_Q q and W_K k cost the same either way if dot-product attention has them too.
CODE = """
n, d, seed = map(int, sys.argv[1:])
rng = np.random.default_rng(seed)
q, k = rng.standard_normal((2, n, d)).astype(np.float32)
v = rng.standard_normal(d).astype(np.float32)
dot, turns = shortest(lambda: q @ k.T, seconds=0.05)
additive, _ = shortest(lambda: np.tanh(q[:, None] + k[None]) @ v, seconds=0.1)
print(json.dumps({"dot": dot, "additive": additive, "turns": turns}))
"""


def _cost(progress: ProgressBar, seed: int, dimensions: tuple[int, ...], tokens: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for d in progress.through(dimensions, 0.4, 1.0):
        found = alone(CODE, tokens, d, seed)
        dot, additive = 1e3 * found["dot"], 1e3 * found["additive"]
        memory = 4 * tokens * tokens / 2**20
        rows.append((d, dot, additive, additive / dot, memory, memory * d, found["turns"]))
    return Table(
        "cost",
        Text(
            en=f"{tokens}×{tokens} scores in NumPy, float32, one thread",
            zh=f"{tokens}×{tokens} 个分数，NumPy，float32，单线程",
        ),
        (
            label("d", same("d")),
            Column("dot_ms", Text(en="dot", zh="点积"), Text(en="ms", zh="毫秒")),
            Column("additive_ms", Text(en="additive", zh="加性"), Text(en="ms", zh="毫秒")),
            Column("ratio", Text(en="additive/dot", zh="加性/点积"), digits=2),
            Column("dot_memory", Text(en="dot memory", zh="点积内存"), same("MiB")),
            Column("additive_memory", Text(en="additive memory", zh="加性内存"), same("MiB")),
            Column("turns", Text(en="repeats", zh="重复次数")),
        ),
        rows,
    )


def exponent(table: Table, key: str, by: str = "d") -> float:
    """Fit b in column ~ by^b by least squares on the logarithms; NaN if there is only one row."""
    x, y = np.log(table.column(by)), np.log(table.column(key))
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan


def _notes(spreads: Table, cost: Table, fits: dict[str, float]) -> list[Text]:
    d = max(cost.column("d"))

    def at(kind: str) -> dict[str, Any]:
        return spreads.row(score=KINDS[kind], d=d)

    last = cost.row(d=d)
    return [
        Text(
            en=f"At d = {d}, the logits of a row have a standard deviation of {at('dot')['spread'].value:.1f} (dot; "
            f"√d = {math.sqrt(d):.1f}), {at('scaled')['spread'].value:.2f} (scaled), "
            f"{at('additive')['spread'].value:.2f} (additive, v ~ N(0, 1/h)) and "
            f"{at('additive_unit')['spread'].value:.1f} (additive, v ~ N(0, 1)).",
            zh=f"d = {d} 时，一行分数的标准差：点积为 {at('dot')['spread'].value:.1f}（√d = {math.sqrt(d):.1f}），"
            f"缩放点积为 {at('scaled')['spread'].value:.2f}，"
            f"加性（v ~ N(0, 1/h)）为 {at('additive')['spread'].value:.2f}，"
            f"加性（v ~ N(0, 1)）为 {at('additive_unit')['spread'].value:.1f}。",
        ),
        Text(
            en=f"tanh bounds each term, not the sum: additive scores need no scaling only if v shrinks like 1/√h. With "
            f"v ~ N(0, 1) the entropy is {at('additive_unit')['entropy'].value:.2f} nats, with v ~ N(0, 1/h) "
            f"{at('additive')['entropy'].value:.2f}.",
            zh=f"tanh 限制的是每一项，不是总和：只有 v 按 1/√h 缩小时，加性分数才不需要缩放。v ~ N(0, 1) 时，熵为 "
            f"{at('additive_unit')['entropy'].value:.2f} 奈特；v ~ N(0, 1/h) 时，熵为 "
            f"{at('additive')['entropy'].value:.2f} 奈特。",
        ),
        Text(
            en=f"At d = {d}, additive scores take {last['ratio']:.0f} times as long as dot products and "
            f"{last['additive_memory']:.0f} MiB instead of {last['dot_memory']:.2g}; their time grows like "
            f"d^{fits['additive']:.1f} (dot: d^{fits['dot']:.1f}).",
            zh=f"d = {d} 时，加性分数的耗时是点积的 {last['ratio']:.0f} 倍，占内存 {last['additive_memory']:.0f} MiB"
            f"（点积占 {last['dot_memory']:.2g}）；耗时按 d^{fits['additive']:.1f} 增长（点积按 "
            f"d^{fits['dot']:.1f} 增长）。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot spread, entropy and time against d."""
    rows = [
        {"d": r["d"], "name": r["score"].of(lang), "spread": r["spread"].value, "entropy": r["entropy"].value}
        for r in result["spread"].records()
    ]
    across = chart.Axis("d", "d", log=True, values=DIMENSIONS)
    named = ("name", Text(en="score", zh="打分函数").of(lang))
    spread = chart.curves(
        rows,
        across,
        chart.Axis("spread", Text(en="sd of a row's logits", zh="一行分数的标准差").of(lang), log=True),
        named,
        title=Text(en="Spread of the logits", zh="分数的分散程度").of(lang),
    )
    entropy = chart.curves(
        rows,
        across,
        chart.Axis("entropy", Text(en="entropy (nats)", zh="熵（奈特）").of(lang), domain=(0.0, 2.4)),
        named,
        title=Text(en="Entropy over 10 keys (uniform: 2.30)", zh="10 个键的熵（均匀：2.30）").of(lang),
    )
    names = {"dot_ms": Text(en="dot", zh="点积"), "additive_ms": Text(en="additive", zh="加性")}
    times = [
        {"d": r["d"], "name": name.of(lang), "ms": r[key]}
        for key, name in names.items()
        for r in result["cost"].records()
    ]
    cost = chart.curves(
        times,
        across,
        chart.Axis("ms", Text(en="time for all scores (ms)", zh="全部分数的耗时（毫秒）").of(lang), log=True),
        ("name", ""),
        title=Text(en="Cost", zh="代价").of(lang),
    )
    return chart.beside(spread, entropy, cost)
