"""The slope that becomes a cliff: softmax([k·x, 0]) turns from a ramp into a wall and a roof as the gain k grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart
from softscope.experiments.table import Cell, Column, Table, label

if TYPE_CHECKING:
    from softscope.experiments.result import Result

Array = np.ndarray[Any, Any]

GAINS = (1.0, 4.0, 16.0, 64.0)
EDGE = 3.0  # x runs from −EDGE to EDGE
FLAT = 0.01  # below this slope we call a place flat


def tables() -> list[Table]:
    """Return how wide and how steep the wall is at each gain, and the curves themselves."""
    x = np.linspace(-EDGE, EDGE, 60_001)
    rows: list[tuple[Cell, ...]] = []
    dense: list[tuple[Cell, ...]] = []
    for gain in GAINS:
        weight, slope = _curve(gain, x)
        low, high = np.interp((0.1, 0.9), weight, x)
        roof = float(_curve(gain, np.array([1.0]))[1][0])
        rows.append((gain, float(high - low), float(slope.max()), roof, float(np.mean(slope < FLAT))))
        dense += [(gain, float(x[i]), float(weight[i]), float(slope[i])) for i in range(0, len(x), 300)]
    name = label("gain", same("k"))
    cliff = Table(
        "cliff",
        Text(en="From ramp to wall and roof: softmax([k·x, 0])", zh="从斜坡到墙和屋顶：softmax([k·x, 0])"),
        (
            name,
            Column("width", Text(en="width of the wall, s₁ from 0.1 to 0.9", zh="墙的宽度，s₁ 从 0.1 到 0.9")),
            Column("steepest", Text(en="steepest slope", zh="最陡处的斜率")),
            Column("roof", Text(en="slope on the roof, x = 1", zh="屋顶上的斜率，x = 1"), digits=2),
            Column(
                "flat",
                Text(
                    en=f"flat share of |x| ≤ {EDGE:g}, slope < {FLAT:g}", zh=f"斜率 < {FLAT:g} 的比例，|x| ≤ {EDGE:g}"
                ),
            ),
        ),
        rows,
    )
    curve = Table(
        "cliff_curve",
        Text(en="The curves of softmax([k·x, 0])", zh="softmax([k·x, 0]) 的曲线"),
        (name, label("x", same("x")), Column("weight", same("s₁")), Column("slope", same("ds₁/dx"))),
        dense,
        dense=True,
    )
    return [cliff, curve]


def _curve(gain: float, x: Array) -> tuple[Array, Array]:
    """Return the first weight and its slope in x, which is k·s₁·s₂."""
    weights = softscope.softmax(np.stack([gain * x, np.zeros_like(x)], axis=-1))
    return weights[:, 0], gain * softscope.jacobian(weights)[:, 0, 0]


def note(cliff: Table) -> Text:
    """Say what the gain does to the wall."""
    first, last = cliff.records()[0], cliff.records()[-1]
    return Text(
        en=f"softmax([k·x, 0]) turns from a ramp into a wall and a roof: from k = {first['gain']:g} to k = "
        f"{last['gain']:g} the wall narrows from {first['width']:.2f} to {last['width']:.3f}, and the flat share of "
        f"|x| ≤ {EDGE:g} grows from {first['flat']:.2f} to {last['flat']:.2f}. The slope does not vanish, it gathers "
        f"in the wall, where it grows from {first['steepest']:.2f} to {last['steepest']:.2f}.",
        zh=f"softmax([k·x, 0]) 从斜坡变成墙和屋顶：k 从 {first['gain']:g} 增到 {last['gain']:g}，墙的宽度从 "
        f"{first['width']:.2f} 缩到 {last['width']:.3f}，|x| ≤ {EDGE:g} 中平坦部分的比例从 {first['flat']:.2f} 增到 "
        f"{last['flat']:.2f}。斜率没有消失，而是集中到墙上，在那里从 {first['steepest']:.2f} 增到 "
        f"{last['steepest']:.2f}。",
    )


def draw(result: Result, lang: Lang) -> Any:
    """Plot the first weight against x at each gain."""
    rows = [{"x": r["x"], "weight": r["weight"], "name": f"k = {r['gain']:g}"} for r in result["cliff_curve"].records()]
    return chart.curves(
        rows,
        chart.Axis("x", "x", domain=(-EDGE, EDGE)),
        chart.Axis("weight", "s₁", domain=(0.0, 1.0)),
        ("name", Text(en="gain", zh="增益").of(lang)),
        title=Text(en="The ramp becomes a wall and a roof", zh="斜坡变成墙和屋顶").of(lang),
        points=False,
    )
