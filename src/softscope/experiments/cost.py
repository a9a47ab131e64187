"""How does the cost of attention grow with sequence length, with and without materialising the weights?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import crossed
from softscope.experiments.subprocess_timing import alone
from softscope.experiments.table import Cell, Column, Measured, Table, label, shown

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="How does attention's cost grow with sequence length, with and without materialised weights?",
    zh="序列变长时，注意力的代价怎样增长？显式写出权重与否有何不同？",
)
SECONDS = 9.0

TOKENS = (256, 512, 1024, 2048)
LARGE = 4096
METHODS = {
    "materialised": Text(en="materialised: softmax(q·k/√d)·v in NumPy", zh="写出权重：用 NumPy 算 softmax(q·k/√d)·v"),
    "attention": same("softscope.attention"),
    "statistics": Text(en="softscope.attention with its statistics", zh="带统计量的 softscope.attention"),
}
MIB = same("MiB")

# Read VmHWM, not ru_maxrss: a process inherits ru_maxrss from its parent.
CODE = """
def resident(field):
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))
    except OSError:  # not Linux: only the peak is available, and only here
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

def materialised(q, k, v):
    logits = q @ k.swapaxes(-1, -2)
    logits /= logits.dtype.type(np.sqrt(q.shape[-1]))
    logits -= logits.max(axis=-1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=-1, keepdims=True)
    return logits @ v

method, n, d, seed = sys.argv[1], *map(int, sys.argv[2:])
call = {
    "materialised": materialised,
    "attention": softscope.attention,
    "statistics": lambda q, k, v: softscope.attention(q, k, v, return_partition=True),
}[method]
q, k, v = np.random.default_rng(seed).standard_normal((3, 1, n, d)).astype(np.float32)
call(q[:, :64], k[:, :64], v[:, :64])  # warm up: load the libraries, start the threads
try:
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # start counting the peak from here
except OSError:
    pass
before = resident("VmRSS")
output = call(q, k, v)
peak = resident("VmHWM") - before
output = output[0] if method == "statistics" else output
wanted = materialised(*(x.astype(np.float64) for x in (q[:, :8], k, v)))
error = float(np.abs(output[:, :8] - wanted).max())
seconds, repeats = shortest(lambda: call(q, k, v), least=2)
print(json.dumps({"seconds": seconds, "repeats": repeats, "bytes": peak, "error": error}))
"""


def measure(
    progress: ProgressBar,
    *,
    seed: int = 0,
    tokens: tuple[int, ...] = TOKENS,
    d: int = 64,
    methods: tuple[str, ...] = tuple(METHODS),
    large: bool = False,
) -> tuple[list[Table], list[Text]]:
    """Measure one head in float32 on one thread: best time, peak extra memory, and how each grows with n."""
    sizes = (*tokens, LARGE) if large else tokens
    jobs = [(method, n) for n in sizes for method in methods]
    weights = [float(n * n) + 5e5 for _, n in jobs]
    rows: list[tuple[Cell, ...]] = []
    for i, (method, n) in enumerate(jobs):
        progress(sum(weights[:i]) / sum(weights))
        found = alone(CODE, method, n, d, seed)
        table = 4 * n * n / 2**20
        rows.append(
            (
                METHODS[method],
                n,
                1e3 * found["seconds"],
                found["bytes"] / 2**20,
                table,
                found["error"],
                found["repeats"],
            )
        )
    costs = Table(
        "cost",
        Text(en=f"One head, d = {d}, float32, one thread", zh=f"一个头，d = {d}，float32，单线程"),
        (
            label("method", Text(en="method", zh="方法")),
            label("n", same("n")),
            Column("ms", Text(en="CPU time", zh="CPU 时间"), Text(en="ms", zh="毫秒")),
            Column("memory", Text(en="peak extra memory", zh="额外内存峰值"), MIB),
            Column("weights", Text(en="n×n weights alone", zh="仅 n×n 权重"), MIB),
            Column("error", Text(en="largest error against float64", zh="与 float64 结果的最大误差"), digits=2),
            Column("repeats", Text(en="repeats", zh="重复次数")),
        ),
        rows,
        dense=True,
    )
    about = Text(en=f"one head, d = {d}, float32, one thread", zh=f"一个头，d = {d}，float32，单线程")
    by_n = [
        crossed(costs, key, title.format(about=about), down="n", across="method", values=values, also=also)
        for key, title, values, also in (
            ("time", Text(en="CPU time: {about}", zh="CPU 时间：{about}"), ("ms",), ()),
            ("memory", Text(en="Peak extra memory: {about}", zh="额外内存峰值：{about}"), ("memory",), ("weights",)),
        )
    ]
    fits = Table(
        "exponents",
        Text(en="Exponent b in cost ~ n^b, with its standard error", zh="代价 ~ n^b 中的指数 b 及其标准误"),
        (
            label("method", Text(en="method", zh="方法")),
            Column("time", Text(en="time", zh="耗时"), digits=2),
            Column("memory", Text(en="memory", zh="内存"), digits=2),
            Column("sizes", Text(en="sizes fitted", zh="参与拟合的规模数")),
        ),
        [
            (METHODS[m], fit(costs, METHODS[m], "ms"), fit(costs, METHODS[m], "memory"), min(len(sizes), FITTED))
            for m in methods
        ],
    )
    return [*by_n, fits, costs], _notes(costs, fits, max(sizes))


FITTED = 3  # the largest sizes: at smaller ones, call overhead and fixed-size buffers hide the law


def fit(costs: Table, method: Text, key: str) -> Measured:
    """Fit the slope of log(cost) against log(n) over the largest sizes."""
    some = sorted((r for r in costs.records() if r["method"] == method), key=lambda r: r["n"])[-FITTED:]
    x, y = (np.log([max(float(r[name]), 2.0**-10) for r in some]) for name in ("n", key))
    if len(some) < 2:
        return Measured(math.nan, math.nan)
    slope, start = np.polyfit(x, y, 1)
    left = y - (slope * x + start)
    spread = float(np.sum((x - x.mean()) ** 2))
    error = math.sqrt(float(left @ left) / (len(some) - 2) / spread) if len(some) > 2 else math.nan
    return Measured(float(slope), error)


def _notes(costs: Table, fits: Table, n: int) -> list[Text]:
    last = {r["method"]: r for r in costs.records() if r["n"] == n}
    slope = {r["method"]: r for r in fits.records()}
    notes = []
    for method, row in last.items():
        time, memory = slope[method]["time"].value, slope[method]["memory"].value
        share = shown(row["memory"] / row["weights"], digits=2)
        notes.append(
            Text(
                en=f"{method.en.partition(':')[0]}: time grows like n^{time:.1f}, memory like n^{memory:.1f}; n = "
                f"{n} takes {row['ms']:.0f} ms and {row['memory']:.0f} MiB, {share} times the n×n weights.",
                zh=f"{method.zh.partition('：')[0]}：耗时按 n^{time:.1f} 增长，内存按 n^{memory:.1f} 增长；n = {n} "
                f"时耗时 {row['ms']:.0f} 毫秒，占内存 {row['memory']:.0f} MiB，是 n×n 权重的 {share} 倍。",
            )
        )
    return notes


def draw(result: Result, lang: Lang) -> Any:
    """Plot time and memory against n."""
    rows = [
        {
            "n": r["n"],
            "name": r["method"].of(lang).partition(":")[0].partition("：")[0],
            "ms": r["ms"],
            "memory": max(r["memory"], 0.1),
        }
        for r in result["cost"].records()
    ]
    across = chart.Axis(
        "n", Text(en="tokens n", zh="token 数 n").of(lang), log=True, values=(256, 512, 1024, 2048, 4096)
    )
    time = chart.curves(
        rows,
        across,
        chart.Axis("ms", Text(en="time (ms)", zh="耗时（毫秒）").of(lang), log=True),
        ("name", ""),
        title=Text(en="Time", zh="耗时").of(lang),
    )
    memory = chart.curves(
        rows,
        across,
        chart.Axis("memory", Text(en="peak extra memory (MiB)", zh="额外内存峰值（MiB）").of(lang), log=True),
        ("name", ""),
        title=Text(en="Memory", zh="内存").of(lang),
    )
    return chart.beside(time, memory)
