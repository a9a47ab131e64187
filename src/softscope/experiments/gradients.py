"""How much of the loss's gradient reaches the logits, Q, K and V, and in how many rows is it blocked?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.entropy import SCALES
from softscope.experiments.fold import crossed, part
from softscope.experiments.table import Cell, Column, Measured, Table, label

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="How much of the loss's gradient reaches the logits, Q, K and V, with and without 1/√d?",
    zh="损失的梯度有多少能传到分数、Q、K 和 V？缩放与不缩放有何不同？",
)
SECONDS = 1.0
Array = np.ndarray[Any, Any]

DIMENSIONS = (16, 64, 256, 1024)
TOKENS = 10
PLACES = {"logits": Text(en="logits", zh="分数"), "Q": same("Q"), "K": same("K"), "V": same("V")}
QUANTILES = (0.1, 0.5, 0.9)


def measure(
    progress: ProgressBar, *, seed: int = 0, runs: int = 200, dimensions: tuple[int, ...] = DIMENSIONS
) -> tuple[list[Table], list[Text]]:
    """Backpropagate a random output gradient through random q, k, v, and measure each token's gradient norms."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Cell, ...]] = []
    blocked: list[tuple[Cell, ...]] = []
    for d in progress.through(dimensions):
        q, k, v, g = rng.standard_normal((4, runs, 1, TOKENS, d))
        for name, scale in (("unscaled", 1.0), ("scaled", 1.0 / math.sqrt(d))):
            norms = backward(q, k, v, g, scale)
            for place, values in norms.items():
                low, middle, high = (float(x) for x in np.quantile(values, QUANTILES))
                mean = Measured.of(values.mean(axis=(1, 2)))
                rows.append((PLACES[place], SCALES[name], d, mean, low, middle, high, values.size))
            readings = softscope.gradient_readings(q, k, v, g, scale=scale)
            trace = softscope.attention_partition(q, k, scale=scale).jacobian_trace
            share = Measured.of(readings.blocked.mean(axis=(1, 2)))
            median = float(np.median(readings.transmission))
            blocked.append(
                (SCALES[name], d, share, median, Measured.of(trace.mean(axis=(1, 2))), readings.blocked.size)
            )
    order = list(PLACES.values())
    rows.sort(key=lambda row: (order.index(row[0]), str(row[1])))  # type: ignore[arg-type]
    norms_table = Table(
        "norms",
        Text(en="Gradient norm per token", zh="每个 token 的梯度范数"),
        (
            label("place", Text(en="place", zh="位置")),
            label("scale", Text(en="scale", zh="缩放")),
            label("d", same("d")),
            Column("mean", Text(en="mean", zh="均值")),
            Column("low", Text(en="10%", zh="10% 分位"), digits=2),
            Column("median", Text(en="median", zh="中位数")),
            Column("high", Text(en="90%", zh="90% 分位")),
            Column("rows", Text(en="rows", zh="行数")),
        ),
        rows,
        dense=True,
    )
    d = max(dimensions)
    widest = crossed(
        part(norms_table, "", lambda r: r["d"] == d),
        "widest",
        Text(en=f"Gradient norm per token, d = {d}", zh=f"每个 token 的梯度范数，d = {d}"),
        down="place",
        across="scale",
        values=("mean", "median"),
        also=("rows",),
    )
    blocked.sort(key=lambda row: str(row[0]))
    readings_table = Table(
        "blocked",
        Text(en="Rows that pass almost no gradient", zh="梯度几乎传不过去的行"),
        (
            label("scale", Text(en="scale", zh="缩放")),
            label("d", same("d")),
            Column("blocked", Text(en="share blocked", zh="被阻断的比例")),
            Column("transmission", Text(en="median transmission", zh="传导率中位数"), digits=2),
            Column("trace", Text(en="mean Σ s(1−s)", zh="Σ s(1−s) 的均值")),
            Column("rows", Text(en="rows", zh="行数")),
        ),
        blocked,
    )
    slopes = _slopes(norms_table)
    return [widest, readings_table, slopes, norms_table], _notes(norms_table, readings_table, slopes)


def backward(q: Array, k: Array, v: Array, g: Array, scale: float) -> dict[str, Array]:
    """Return per-token norms of the gradients at logits, q, k and v; shape (runs, 1, tokens)."""
    p = softscope.softmax(scale * (q @ k.swapaxes(-1, -2)))
    d_logits = softscope.jacobian_product(p, g @ v.swapaxes(-1, -2))
    gradients = {
        "logits": d_logits,
        "Q": scale * (d_logits @ k),
        "K": scale * (d_logits.swapaxes(-1, -2) @ q),
        "V": p.swapaxes(-1, -2) @ g,  # uses the weights themselves, not their derivative
    }
    return {place: np.linalg.norm(x, axis=-1) for place, x in gradients.items()}


def _slopes(norms: Table) -> Table:
    """Fit the exponent b in norm ~ d^b by least squares on the logarithms."""
    rows: list[tuple[Cell, ...]] = []
    for place in PLACES.values():
        for scale in SCALES.values():
            some = [r for r in norms.records() if r["place"] == place and r["scale"] == scale]
            x = np.log([r["d"] for r in some])
            fits = []
            for norm in ([r["mean"].value for r in some], [r["median"] for r in some]):
                y = np.log(np.maximum(norm, 1e-300))
                fits.append(float(np.polyfit(x, y, 1)[0]) if len(some) > 1 else math.nan)
            rows.append((place, scale, *fits))
    return Table(
        "exponents",
        Text(en="Exponent b in norm ~ d^b", zh="范数 ~ d^b 中的指数 b"),
        (
            label("place", Text(en="place", zh="位置")),
            label("scale", Text(en="scale", zh="缩放")),
            Column("mean", Text(en="of the mean", zh="均值的"), digits=2),
            Column("median", Text(en="of the median", zh="中位数的"), digits=2),
        ),
        rows,
    )


def _notes(norms: Table, blocked: Table, slopes: Table) -> list[Text]:
    d = max(norms.column("d"))
    first = min(norms.column("d"))

    def at(place: str, scale: str, d: int) -> dict[str, Any]:
        return norms.row(place=place, scale=SCALES[scale], d=d)

    q_plain, q_scaled = at("Q", "unscaled", d), at("Q", "scaled", d)
    v_plain, v_scaled = at("V", "unscaled", d), at("V", "scaled", d)
    stuck = {name: blocked.row(scale=SCALES[name], d=d)["blocked"].value for name in SCALES}
    exponent, tame = (slopes.row(place="Q", scale=scale)["mean"] for scale in SCALES.values())
    return [
        Text(
            en=f"Without 1/√d, the mean ‖∂L/∂Q‖ does not fall like 1/d. It grows like d^{exponent:.2f}, from "
            f"{at('Q', 'unscaled', first)['mean'].value:.1f} at d = {first} to {q_plain['mean'].value:.1f} at d = {d}; "
            f"with 1/√d it grows like d^{tame:.2f}, as the norm of a random gradient at the output does.",
            zh=f"不缩放时，‖∂L/∂Q‖ 的均值并不按 1/d 下降，而是按 d^{exponent:.2f} 增长：从 d = {first} 时的 "
            f"{at('Q', 'unscaled', first)['mean'].value:.1f} 增到 d = {d} 时的 {q_plain['mean'].value:.1f}；缩放后按 "
            f"d^{tame:.2f} 增长，与输出处随机梯度的范数一样。",
        ),
        Text(
            en=f"A minority of the rows gets nearly all of it: at d = {d} the median is {q_plain['median']:.2g} "
            f"(scaled: {q_scaled['median']:.1f}), and {stuck['unscaled']:.0%} of the rows are blocked (scaled: "
            f"{stuck['scaled']:.0%}).",
            zh=f"梯度几乎全集中在少数行：d = {d} 时，中位数为 {q_plain['median']:.2g}（缩放后为 "
            f"{q_scaled['median']:.1f}），被阻断的行占 {stuck['unscaled']:.0%}（缩放后占 {stuck['scaled']:.0%}）。",
        ),
        Text(
            en=f"V still learns: its gradient does not pass through the softmax's derivative (at d = {d} the mean "
            f"‖∂L/∂V‖ is {v_plain['mean'].value:.1f} unscaled and {v_scaled['mean'].value:.1f} scaled).",
            zh=f"V 仍能学习：它的梯度不经过 softmax 的导数（d = {d} 时 ‖∂L/∂V‖ 的均值：不缩放为 "
            f"{v_plain['mean'].value:.1f}，缩放为 {v_scaled['mean'].value:.1f}）。",
        ),
    ]


def draw(result: Result, lang: Lang) -> Any:
    """Plot mean and median at each place, and the share of blocked rows."""
    kinds = {"mean": Text(en="mean", zh="均值"), "median": Text(en="median", zh="中位数")}
    across = chart.Axis("d", "d", log=True, values=DIMENSIONS)
    panels = []
    for place in PLACES.values():
        rows = [
            {
                "d": r["d"],
                "name": kind.of(lang) + Text(en=", ", zh="，").of(lang) + r["scale"].of(lang),
                "norm": max(r["mean"].value if key == "mean" else r[key], 1e-8),
            }
            for key, kind in kinds.items()
            for r in result["norms"].records()
            if r["place"] == place
        ]
        norm = chart.Axis("norm", Text(en="gradient norm", zh="梯度范数").of(lang), log=True)
        title = Text(en="At {place}", zh="位置：{place}").of(lang).format(place=place.of(lang))
        panels.append(chart.curves(rows, across, norm, ("name", ""), title=title, width=240, height=180))
    stuck = [
        {
            "d": r["d"],
            "name": r["scale"].of(lang),
            "share": r["blocked"].value,
            "low": r["blocked"].value - 2 * r["blocked"].error,
            "high": r["blocked"].value + 2 * r["blocked"].error,
        }
        for r in result["blocked"].records()
    ]
    share = chart.Axis("share", Text(en="share of rows", zh="占全部行的比例").of(lang), domain=(0.0, 1.0), form=".0%")
    title = Text(en="Blocked rows", zh="被阻断的行").of(lang)
    panels.append(
        chart.curves(stuck, across, share, ("name", ""), error=("low", "high"), title=title, width=240, height=180)
    )
    return chart.beside(*panels)
