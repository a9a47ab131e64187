"""Where does exp overflow, and what does subtracting the maximum change?"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.fold import part
from softscope.experiments.table import Cell, Column, Table, bracketed, label

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="Where does softmax break without the shift, and does subtracting the maximum change the answer?",
    zh="不减最大值的 softmax 在哪里失效？减去最大值会改变结果吗？",
)
SECONDS = 0.1
Array = np.ndarray[Any, Any]
HEIGHTS = (-1000, -745, -740, -730, -720, -710, -700, -400, -100, 0, 100, 400, 700, 706, 707, 1000)
WAY = (-1000, -745, -740, -730, -720, -710, 0, 706, 707, 1000)
ROW = np.array([1.0, 2.0, 3.0])


def naive(x: Array) -> Array:
    """Compute exp(x) / Σ exp(x) literally; it warns where it breaks, but never raises."""
    e = np.exp(x)
    return np.asarray(e / e.sum())


def measure(progress: ProgressBar, *, seed: int = 0) -> tuple[list[Table], list[Text]]:
    """Find each dtype's limits, which are numbers of that dtype, and the error on the way. Nothing is random."""
    del progress, seed
    limits = Table(
        "limits",
        Text(en="Where it breaks, by dtype", zh="各数据类型的失效点"),
        (
            label("dtype", Text(en="dtype", zh="数据类型")),
            Column("largest", Text(en="largest x with finite exp", zh="exp 有限的最大 x"), digits=6),
            Column("log_max", same("ln(max)"), digits=6),
            Column("sum_up", Text(en="[x−2, x−1, x]: all 0 from x =", zh="[x−2, x−1, x]：全为 0 的起点 x"), digits=6),
            Column("naive_up", Text(en="[x−2, x−1, x]: NaN from x =", zh="[x−2, x−1, x]：为 NaN 的起点 x"), digits=6),
            Column(
                "naive_down", Text(en="[x−2, x−1, x]: 0/0 below x =", zh="[x−2, x−1, x]：低于此 x 为 0/0"), digits=6
            ),
            Column("shifted", Text(en="with the shift, at these limits", zh="减去最大值后，在这些点"), digits=4),
        ),
        [_limits(dtype) for dtype in _dtypes()],
    )
    errors = _errors()
    cases = _cases()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        naive(np.array([1000.0, 1001.0, 1002.0]))
    up = {record["dtype"]: record["naive_up"] for record in limits.records()}
    zeros = {record["dtype"]: record["sum_up"] for record in limits.records()}
    stable = max(record["shift_error"] for record in errors.records())
    notes = [
        Text(
            en=f"Without the shift, [x−2, x−1, x] gives NaN from x = {up['float16']:.2f} in float16, "
            f"{up['float32']:.2f} in float32 and {up['float64']:.2f} in float64, where exp(x) exceeds the largest "
            f"number. It goes wrong a little earlier: from {zeros['float16']:.2f}, {zeros['float32']:.2f} and "
            f"{zeros['float64']:.2f} on, the sum exceeds it and every weight is 0.",
            zh=f"不减最大值时，[x−2, x−1, x] 在 float16 中从 x = {up['float16']:.2f} 起得到 NaN，在 float32 中从 "
            f"{up['float32']:.2f} 起，在 float64 中从 {up['float64']:.2f} 起，这时 exp(x) 超出了能表示的最大数。"
            f"出错还要更早一点：从 {zeros['float16']:.2f}、{zeros['float32']:.2f} 和 {zeros['float64']:.2f} 起，"
            f"总和已超出最大数，权重全为 0。",
        ),
        Text(
            en=f"No exception is raised: NumPy warns {len(caught)} times and returns NaN, so `except` never sees it.",
            zh=f"不会抛出异常：NumPy 发出 {len(caught)} 次警告并返回 NaN，`except` 永远捕获不到。",
        ),
        Text(
            en=f"With the shift, [1, 2, 3] + c has the same weights as [1, 2, 3] for every c tried; the largest error "
            f"in float64 is {stable:.1g}.",
            zh=f"减去最大值后，对试过的每个 c，[1, 2, 3] + c 的权重都与 [1, 2, 3] 的相同；float64 中的最大误差为 "
            f"{stable:.1g}。",
        ),
        Text(
            en=f"log(softmax([0, −1000])) is {_log_after(naive):.0f} where log_softmax gives "
            f"{float(softscope.log_softmax([0.0, -1000.0])[1]):.0f}: a logarithm taken after rounding comes too late.",
            zh=f"log(softmax([0, −1000])) 得 {_log_after(naive):.0f}，而 log_softmax 得 "
            f"{float(softscope.log_softmax([0.0, -1000.0])[1]):.0f}：舍入之后再取对数就晚了。",
        ),
    ]
    return [limits, cases, part(errors, "way", lambda r: r["c"] in WAY), errors], notes


def _dtypes() -> list[np.dtype[Any]]:
    names: list[Any] = [np.float16, np.float32, np.float64]
    try:
        import ml_dtypes

        names.insert(1, ml_dtypes.bfloat16)
    except ModuleNotFoundError:  # optional dependency: fall back to three dtypes
        pass
    return [np.dtype(name) for name in names]


def _limits(dtype: np.dtype[Any]) -> tuple[Cell, ...]:
    def row(x: float) -> Array:
        return np.array([x - 2.0, x - 1.0, x]).astype(dtype)

    def broken(x: float) -> bool:
        return bool(np.isnan(naive(row(x)).astype(np.float64)).any())

    def wrong(x: float) -> bool:
        # Every exp is finite but their sum is not: the weights are 0, and sum to 0.
        return not float(naive(row(x)).astype(np.float64).sum()) > 0.5

    with np.errstate(all="ignore"):
        largest, _ = border(lambda x: bool(np.isinf(np.exp(np.array(x).astype(dtype)))), dtype)
        (_, zeros), (_, up) = border(wrong, dtype), border(broken, dtype)
        down = -border(lambda x: broken(-x), dtype)[0]
    log_max = math.log(float(_info(dtype).max))
    safe = all(
        np.isfinite(softscope.softmax(row(x)).astype(np.float64)).all() for x in (up, down, 8.0 * up, 8.0 * down)
    )
    return (
        str(dtype),
        largest,
        log_max,
        zeros,
        up,
        down,
        Text(en="finite", zh="有限") if safe else Text(en="broken", zh="失效"),
    )


def _info(dtype: np.dtype[Any]) -> Any:
    if dtype.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.finfo(dtype)


def border(beyond: Callable[[float], bool], dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return two neighbouring numbers of the dtype, from 0 to 1000: the last not `beyond`, and the first beyond.

    Bits of positive floats count up with their values, so bisecting the bits visits only numbers that the dtype has.
    """
    bits = np.dtype(f"u{dtype.itemsize}")

    def number(pattern: int) -> float:
        return float(np.array(pattern, bits).view(dtype))

    low, high = (int(np.array(x).astype(dtype).view(bits)) for x in (0.0, 1000.0))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beyond(number(middle)) else (middle, high)
    return number(low), number(high)


def _cases() -> Table:
    rows: list[tuple[Cell, ...]] = []
    with np.errstate(all="ignore"):
        for row in ([1.0, 2.0, 3.0], [1000.0, 1001.0, 1002.0], [-1000.0, -999.0, -998.0]):
            x = np.array(row)
            rows.append((bracketed(x, 0), bracketed(naive(x)), bracketed(softscope.softmax(x))))
    return Table(
        "cases",
        Text(en="Three rows with the same differences, float64", zh="差距相同的三行分数（float64）"),
        (
            label("row", Text(en="logits", zh="分数")),
            Column("naive", Text(en="without the shift", zh="不减最大值")),
            Column("shifted", same("softscope.softmax")),
        ),
        rows,
    )


def _errors() -> Table:
    wanted = [math.exp(x - 3.0) / math.fsum(math.exp(y - 3.0) for y in ROW) for x in ROW]
    rows: list[tuple[Cell, ...]] = []
    with np.errstate(all="ignore"):
        for c in HEIGHTS:
            worst = [float(np.max(np.abs(f(ROW + c) - wanted))) for f in (naive, softscope.softmax)]
            rows.append((c, *(None if math.isnan(w) else w for w in worst)))
    return Table(
        "errors",
        Text(en="Largest error in a weight of [1, 2, 3] + c, float64", zh="[1, 2, 3] + c 的权重的最大误差（float64）"),
        (
            label("c", same("c")),
            Column("naive_error", Text(en="without the shift", zh="不减最大值"), digits=2),
            Column("shift_error", same("softscope.softmax"), digits=2),
        ),
        rows,
        dense=True,
    )


def _log_after(f: Callable[[Array], Array]) -> float:
    with np.errstate(all="ignore"):
        return float(np.log(f(np.array([0.0, -1000.0])))[1])


def draw(result: Result, lang: Lang) -> Any:
    """Plot each dtype's range and the error on the way."""
    import altair as alt

    reach = [
        {
            "dtype": record["dtype"],
            "low": record["naive_down"],
            "high": record["sum_up"],
            "below": f"< {record['sum_up']:.1f}",
        }
        for record in result["limits"].records()
    ]
    base = alt.Chart(chart.data(reach))
    up = alt.Y("dtype:N", title=Text(en="dtype", zh="数据类型").of(lang), sort=[r["dtype"] for r in reach])
    span = base.mark_bar(color=chart.COLOURS[4], height=18).encode(
        x=alt.X(
            "low:Q",
            title=Text(en="x in [x−2, x−1, x]", zh="[x−2, x−1, x] 中的 x").of(lang),
            scale=alt.Scale(domain=[-950, 980], nice=False),
        ),
        x2="high:Q",
        y=up,
    )
    ends = [
        base.mark_text(align="right", dx=-4, fontSize=11).encode(x="low:Q", y=up, text=alt.Text("low:Q", format=".1f")),
        base.mark_text(align="left", dx=4, fontSize=11).encode(x="high:Q", y=up, text="below:N"),
    ]
    left = alt.layer(span, *ends).properties(
        width=chart.WIDTH + 80,
        height=130,
        title=Text(
            en="The logits that softmax can take without the shift", zh="不减最大值的 softmax 能承受的分数范围"
        ).of(lang),
    )
    lost = [
        # A log axis cannot show an error of 0, so 1e-17 stands for it; 1 stands for NaN.
        {"c": r["c"], "f": f.of(lang), "error": 1.0 if r[key] is None else max(r[key], 1e-17)}
        for key, f in (("naive_error", Text(en="no", zh="不减")), ("shift_error", Text(en="yes", zh="减")))
        for r in result["errors"].records()
    ]
    right = chart.curves(
        lost,
        chart.Axis("c", Text(en="c in [1, 2, 3] + c", zh="[1, 2, 3] + c 中的 c").of(lang), domain=(-1050, 1050)),
        chart.Axis(
            "error",
            Text(en="error in a weight (1: NaN)", zh="权重的误差（1 表示 NaN）").of(lang),
            log=True,
            domain=(3e-18, 3.0),
        ),
        ("f", Text(en="maximum subtracted", zh="减去最大值").of(lang)),
        title=Text(en="float64: right, then a little wrong, then NaN", zh="float64：先正确，再有误差，最后为 NaN").of(
            lang
        ),
    )
    return chart.beside(left, right, columns=1)
