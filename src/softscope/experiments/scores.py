"""Additive, dot or scaled dot: how far do the logits spread, how sharp are the weights, and what does it cost?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope.experiments import chart
from softscope.experiments.subprocess_timing import alone
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, label
from softscope.experiments.text import Lang, Text

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    "Additive, dot or scaled dot product: spread of the logits, sharpness of the weights, cost?",
    "加性、点积还是缩放点积：分数有多分散，权重有多尖锐，代价多大？",
)
SECONDS = 3.0
Array = np.ndarray[Any, Any]

DIMENSIONS = (16, 64, 256, 1024)
KINDS = {
    "dot": Text("dot: q·k", "点积：q·k"),
    "scaled": Text("scaled: q·k/√d", "缩放：q·k/√d"),
    "additive": Text("additive, v ~ N(0, 1/h)", "加性，v ~ N(0, 1/h)"),
    "additive_unit": Text("additive, v ~ N(0, 1)", "加性，v ~ N(0, 1)"),
}
KEYS = 10


def logits(q: Array, k: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Scores (n, m) of q (n, d) and k (m, d), by kind; the additive ones with fresh weights, hidden width h = d."""
    d = q.shape[-1]
    w_q, w_k = rng.standard_normal((2, d, d)) / math.sqrt(d)
    additive = np.tanh((q @ w_q)[:, None] + (k @ w_k)[None]) @ rng.standard_normal(d)
    dot = q @ k.T
    return {"dot": dot, "scaled": dot / math.sqrt(d), "additive": additive / math.sqrt(d), "additive_unit": additive}


def measure(
    progress: ProgressBar, *, seed: int = 0, runs: int = 40, dimensions: tuple[int, ...] = DIMENSIONS, tokens: int = 64
) -> tuple[list[Table], list[Text]]:
    """Random q and k of unit variance; errors count runs, which have their own weights. Then the time of n×n scores."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Cell, ...]] = []
    for d in progress.through(dimensions, 0.0, 0.4):
        few = runs if d <= 256 else max(8, runs // 4)
        kept: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        for _ in range(few):
            scores = logits(rng.standard_normal((KEYS, d)), rng.standard_normal((KEYS, d)), rng)
            for kind, row in scores.items():
                state = softscope.partition(row)
                readings = (row.std(axis=-1), state.entropy, state.peak, state.jacobian_trace)
                kept[kind].append([float(reading.mean()) for reading in readings])
        rows += [
            (name, d, *(Measured.of(x) for x in zip(*kept[kind], strict=True)), few) for kind, name in KINDS.items()
        ]
    spreads = Table(
        "spread",
        Text(f"Scores over {KEYS} keys, unit-variance q and k", f"{KEYS} 个键的分数，q、k 方差为 1"),
        (
            label("score", "score", "打分函数"),
            label("d", "d"),
            Column("spread", Text("sd within a row", "行内标准差")),
            Column("entropy", Text("entropy", "熵"), NATS),
            Column("peak", Text("largest weight", "最大权重")),
            Column("trace", Text("Σ s(1−s)", "Σ s(1−s)")),
            Column("runs", Text("runs of 10 rows", "运行次数（各 10 行）")),
        ),
        rows,
    )
    cost = _cost(progress, seed, dimensions, tokens)
    fits = {kind: exponent(cost, f"{kind}_ms") for kind in ("dot", "additive")}
    return [spreads, cost], _notes(spreads, cost, fits)


# The projections W_Q q and W_K k cost both the same, if dot-product attention has them: only scores are timed.
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
            f"Scores of {tokens}×{tokens} tokens in NumPy, float32, one thread",
            f"{tokens}×{tokens} token 的分数，NumPy，float32，单线程",
        ),
        (
            label("d", "d"),
            Column("dot_ms", Text("dot", "点积"), Text("ms", "毫秒")),
            Column("additive_ms", Text("additive", "加性"), Text("ms", "毫秒")),
            Column("ratio", Text("additive/dot", "加性/点积"), digits=2),
            Column("dot_memory", Text("dot memory", "点积内存"), Text("MiB", "MiB")),
            Column("additive_memory", Text("additive memory", "加性内存"), Text("MiB", "MiB")),
            Column("turns", Text("repeats", "重复次数")),
        ),
        rows,
    )


def exponent(table: Table, key: str, by: str = "d") -> float:
    """b of column ~ by^b, by least squares on logarithms; NaN with a single row."""
    x, y = np.log(table.column(by)), np.log(table.column(key))
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan


def _notes(spreads: Table, cost: Table, fits: dict[str, float]) -> list[Text]:
    d = max(cost.column("d"))

    def at(kind: str) -> dict[str, Any]:
        return spreads.row(score=KINDS[kind], d=d)

    last = cost.row(d=d)
    return [
        Text(
            f"At d = {d} the logits of one row spread by {at('dot')['spread'].value:.1f} (dot), "
            f"{at('scaled')['spread'].value:.2f} (scaled), {at('additive')['spread'].value:.2f} (additive, v ~ N(0, "
            f"1/h)) "
            f"and {at('additive_unit')['spread'].value:.1f} (additive, v ~ N(0, 1)).",
            f"d = {d} 时，一行分数的标准差：点积 {at('dot')['spread'].value:.1f}，缩放 "
            f"{at('scaled')['spread'].value:.2f}，"
            f"加性（v ~ N(0, 1/h)）{at('additive')['spread'].value:.2f}，加性（v ~ N(0, 1)）"
            f"{at('additive_unit')['spread'].value:.1f}。",
        ),
        Text(
            f"tanh bounds each term, not the sum: additive scores need no scale only if v shrinks like 1/√h; with v "
            f"~ N(0, 1) "
            f"the entropy is {at('additive_unit')['entropy'].value:.2f} nats against "
            f"{at('additive')['entropy'].value:.2f}.",
            f"tanh 限制的是每一项，不是总和：只有 v 按 1/√h 缩小时，加性分数才不需要缩放；v ~ N(0, 1) 时熵为 "
            f"{at('additive_unit')['entropy'].value:.2f} 奈特，否则为 {at('additive')['entropy'].value:.2f}。",
        ),
        Text(
            f"Additive scores take {last['ratio']:.0f} times the time of dot products at d = {d}, and "
            f"{last['additive_memory']:.0f} MiB instead of {last['dot_memory']:.2g}; time grows like "
            f"d^{fits['additive']:.1f} "
            f"(dot: d^{fits['dot']:.1f}).",
            f"d = {d} 时，加性分数耗时是点积的 {last['ratio']:.0f} 倍，占内存 {last['additive_memory']:.0f} MiB（点积 "
            f"{last['dot_memory']:.2g}）；耗时按 d^{fits['additive']:.1f} 增长（点积 d^{fits['dot']:.1f}）。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Spread and entropy against d, and the time."""
    rows = [
        {"d": r["d"], "name": r["score"](lang), "spread": r["spread"].value, "entropy": r["entropy"].value}
        for r in result["spread"].records()
    ]
    across = chart.Axis("d", "d", log=True, values=DIMENSIONS)
    named = ("name", Text("score", "打分函数")(lang))
    spread = chart.curves(
        rows,
        across,
        chart.Axis("spread", Text("sd of a row's logits", "一行分数的标准差")(lang), log=True),
        named,
        title=Text("Spread of the logits", "分数的分散程度")(lang),
    )
    entropy = chart.curves(
        rows,
        across,
        chart.Axis("entropy", Text("entropy (nats)", "熵（奈特）")(lang), domain=(0.0, 2.4)),
        named,
        title=Text("Entropy over 10 keys (uniform: 2.30)", "10 个键的熵（均匀：2.30）")(lang),
    )
    names = {"dot_ms": Text("dot", "点积"), "additive_ms": Text("additive", "加性")}
    times = [
        {"d": r["d"], "name": name(lang), "ms": r[key]} for key, name in names.items() for r in result["cost"].records()
    ]
    cost = chart.curves(
        times,
        across,
        chart.Axis("ms", Text("time of 64×64 scores (ms)", "64×64 个分数的耗时（毫秒）")(lang), log=True),
        ("name", ""),
        title=Text("Cost", "代价")(lang),
    )
    return chart.beside(spread, entropy, cost)
