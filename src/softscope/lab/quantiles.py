"""The picture of lesson 6: how the gradient norms of many rows spread, against d."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.experiments import chart

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOOR = 1e-6  # norms below this are drawn here: a lower axis would squeeze everything else into a line


def bands(rows: Sequence[dict[str, Any]], *, title: str) -> Any:
    """Draw, for each name, the median as a line, the mean dashed, and a band from the low to the high quantile.

    Args:
        rows: dictionaries with d, name, low, median, high and mean.
        title: of the vertical axis.
    """
    import altair as alt

    kept = [row | {key: max(float(row[key]), FLOOR) for key in ("low", "median", "high", "mean")} for row in rows]
    names = list(dict.fromkeys(str(row["name"]) for row in kept))
    sizes = tuple(sorted({float(row["d"]) for row in kept}))
    across = alt.X("d:Q", **chart.Axis("d", "d", log=True, values=sizes).options(kept))
    high = max(row["high"] for row in kept) * 1.3
    axis = chart.Axis("median", title, log=True, domain=(FLOOR, high)).options(kept)
    colours = alt.Scale(domain=names, range=[chart.COLOURS[1], chart.COLOURS[2]])
    colour = alt.Color("name:N", sort=names, scale=colours, legend=alt.Legend(title=None, symbolOpacity=1))
    base = alt.Chart(chart.data(kept)).encode(x=across, color=colour)
    up = alt.Y("median:Q", **axis)
    return alt.layer(
        base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", **axis), y2="high:Q"),
        base.mark_line(strokeDash=[6, 3], strokeWidth=1.5).encode(y=alt.Y("mean:Q", **axis)),
        base.mark_line(strokeWidth=3, point=True).encode(y=up),
    ).properties(height=300)
