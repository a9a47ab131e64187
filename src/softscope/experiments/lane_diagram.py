"""Draw two lanes of boxes, from the range of the scores to weights to slope, with the measured numbers inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._text import Lang, Text
from softscope.experiments import chart

if TYPE_CHECKING:
    from softscope.experiments.table import Table

WIDTH, HEIGHT, GAP = 190, 84, 46
RED, GREEN = ("#f9d7d2", "#b3261e"), ("#d5ecd8", "#1b7a3d")  # fill and line


def diagram(lanes: Table, small: float, lang: Lang) -> Any:
    """Draw the unscaled lane in red with dashed lines, the scaled one in green with solid lines."""
    import altair as alt

    boxes: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    arrows: list[dict[str, Any]] = []
    for row, (lane, (_, line)) in enumerate(zip(lanes.records(), (RED, GREEN), strict=True)):
        top = row * (HEIGHT + 24)
        for column, lines in enumerate(_texts(lane, small, lang)):
            left = column * (WIDTH + GAP)
            boxes.append({"x": left, "x2": left + WIDTH, "y": top, "y2": top + HEIGHT, "line": line})
            words += [
                {"x": left + WIDTH / 2, "y": top + 20 + 22 * i, "text": text, "head": i == 0}
                for i, text in enumerate(lines)
            ]
            if column:
                arrows.append({"x": left - GAP + 5, "x2": left - 11, "y": top + HEIGHT / 2, "line": line})
    width, height = 3 * WIDTH + 2 * GAP, 2 * HEIGHT + 24

    def place(rows: list[dict[str, Any]]) -> Any:
        x, y = alt.Scale(domain=[0, width], nice=False), alt.Scale(domain=[height, 0], nice=False)
        return alt.Chart(chart.data(rows)).encode(
            x=alt.X("x:Q", scale=x, axis=None), y=alt.Y("y:Q", scale=y, axis=None)
        )

    colour = alt.Color("line:N", scale=None)
    layers = [
        *(
            place([box for box in boxes if box["line"] == line])
            .mark_rect(strokeWidth=2, strokeDash=dash, cornerRadius=5, fill=fill, stroke=line)
            .encode(x2="x2:Q", y2="y2:Q")
            for (fill, line), dash in ((RED, [6, 3]), (GREEN, [1, 0]))
        ),
        place(arrows).mark_rule(strokeWidth=2).encode(x2="x2:Q", color=colour),
        place([{**arrow, "x": arrow["x2"] + 4} for arrow in arrows])
        .mark_point(shape="triangle-right", filled=True, size=110, opacity=1)
        .encode(color=colour),
        place([word for word in words if word["head"]]).mark_text(fontSize=13, fontWeight="bold").encode(text="text:N"),
        place([word for word in words if not word["head"]]).mark_text(fontSize=12).encode(text="text:N"),
    ]
    bare = alt.ViewBackground(stroke=None)
    return alt.layer(*layers).properties(width=width, height=height, title=lanes.title.of(lang), view=bare)


def _texts(lane: dict[str, Any], small: float, lang: Lang) -> list[list[str]]:
    """Return the lines of each box: heading, then readings."""
    low, high, peak, flat = lane["low"], lane["high"], lane["peak"].value, lane["flat"].value
    return [
        [
            lane["lane"].of(lang),
            Text(en="99.7% of the scores in", zh="99.7% 的分数在").of(lang),
            f"[{low:.2f}, {high:.2f}]",
        ],
        [
            "softmax",
            Text(en="largest weight,", zh="最大权重，").of(lang),
            Text(en="on average", zh="平均").of(lang) + f" {peak:.2f}",
        ],
        [
            Text(en="slope", zh="斜率").of(lang),
            Text(en="median Σ s(1−s)", zh="Σ s(1−s) 的中位数").of(lang) + f" {lane['trace']:.3f}",
            Text(en=f"below {small:g} in {flat:.0%} of rows", zh=f"{flat:.0%} 的行低于 {small:g}").of(lang),
        ],
    ]
