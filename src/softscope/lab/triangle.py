"""The picture of lesson 8: three values as corners, and the output as a dot inside or outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.experiments import chart

if TYPE_CHECKING:
    from collections.abc import Sequence

EDGES = (-0.8, 1.8)


def triangle(corners: Sequence[Sequence[float]], output: Sequence[float]) -> Any:
    """Draw the values v₁, v₂, v₃ as the corners of a triangle, and the output O.

    >>> drawn = triangle([[1, 0], [0, 1], [1, 1]], [0.5, 0.5]).to_dict()
    >>> [layer["mark"]["type"] for layer in drawn["layer"]]
    ['line', 'point', 'text']
    """
    import altair as alt

    around = [{"x": float(x), "y": float(y), "place": i} for i, (x, y) in enumerate([*corners, corners[0]])]
    named = [{"x": float(x), "y": float(y), "name": f"v{'₁₂₃'[i]}"} for i, (x, y) in enumerate(corners)]
    marks = [*named, {"x": float(output[0]), "y": float(output[1]), "name": "O"}]
    x, y = (alt.X("x:Q", **_axis("x")), alt.Y("y:Q", **_axis("y")))
    colour = alt.condition("datum.name === 'O'", alt.value(chart.COLOURS[1]), alt.value(chart.COLOURS[0]))
    base = alt.Chart(chart.data(marks)).encode(x=x, y=y)
    return alt.layer(
        alt.Chart(chart.data(around)).mark_line(color=chart.COLOURS[0]).encode(x=x, y=y, order="place:Q"),
        base.mark_point(filled=True, size=140, opacity=1).encode(color=colour),
        base.mark_text(dx=14, dy=-10, fontSize=14).encode(text="name:N", color=colour),
    ).properties(height=260)


def _axis(key: str) -> dict[str, Any]:
    return chart.Axis(key, "", domain=EDGES).options()
