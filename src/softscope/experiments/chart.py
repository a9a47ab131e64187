"""Draw, style and save charts: readable in greyscale print, with working Chinese labels."""

from __future__ import annotations

import dataclasses
import html
import math
import textwrap
from typing import TYPE_CHECKING, Any

from softscope.experiments.table import figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from softscope._text import Lang
    from softscope.experiments.result import Result

# One family covers Latin and Chinese, so sizes and weights match; the last entries are system fallbacks.
FONT = "Noto Sans CJK SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, WenQuanYi Micro Hei, sans-serif"
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f"]  # Okabe and Ito
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1], [1, 3], [10, 2, 2, 2, 2, 2]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
SUFFIXES = (".html", ".svg", ".png")
WIDTH, HEIGHT = 300, 220


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis: its data key, its title and its scale."""

    key: str
    title: str
    log: bool = False
    domain: tuple[float, float] | None = None
    values: tuple[float, ...] | None = None
    form: str = "~g"

    def options(self, rows: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """Return the Altair options for this axis; a log axis takes its range from the rows unless it has a domain."""
        import altair as alt

        domain, values = self.domain, self.values
        known = [row[self.key] for row in rows if row[self.key] is not None and row[self.key] > 0.0]
        if self.log and known:
            domain = domain or (min(known) / 1.3, max(known) * 1.3)
            values = values or powers(*domain)
        scale: dict[str, Any] = {"type": "log" if self.log else "linear", "nice": domain is None}
        if domain is not None:
            scale |= {"domain": list(domain)}
        # Vega turns a plain format into "1e+3"; it leaves an expression alone.
        axis: dict[str, Any] = {"labelExpr": f"format(datum.value, '{self.form}')", "labelOverlap": True}
        if values is not None:
            axis |= {"values": list(values)}
        return {"title": self.title, "scale": alt.Scale(**scale), "axis": alt.Axis(**axis)}


def powers(low: float, high: float) -> tuple[float, ...]:
    """Return up to eight powers of ten in an interval; if there are fewer than two, return powers of two.

    >>> powers(0.5, 200.0), powers(3.0, 9.0), len(powers(1e-40, 1.0))
    ((1.0, 10.0, 100.0), (4.0, 8.0), 7)
    """
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last - first < 1:
        return tuple(2.0**e for e in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1))
    step = max(1, math.ceil((last - first + 1) / 8))
    return tuple(10.0**e for e in range(first + -first % step, last + 1, step))


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Wrap rows for Altair without pandas."""
    import altair as alt

    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]


def curves(
    rows: Sequence[dict[str, Any]],
    x: Axis,
    y: Axis,
    series: tuple[str, str],
    *,
    title: str = "",
    error: tuple[str, str] | None = None,
    points: bool = True,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Any:
    """Draw lines with distinct colour, dash and shape; `error` names the keys of the interval's two ends."""
    import altair as alt

    key, name = series
    names = list(dict.fromkeys(str(row[key]) for row in rows))
    drawn = [row for row in rows if row[y.key] is not None]
    base = alt.Chart(data(drawn))
    # With points, the legend shows colour and shape; without, colour and dash. A single line needs no legend.
    look: dict[str, Any] = (
        {"symbolStrokeWidth": 0, "symbolSize": 80} if points else {"symbolType": "stroke", "symbolSize": 300}
    )
    legend = alt.Legend(title=name or None, **look) if len(names) > 1 else None
    colours = alt.Scale(domain=names, range=COLOURS[: len(names)])
    colour = alt.Color(f"{key}:N", sort=names, legend=legend, scale=colours)
    across = alt.X(f"{x.key}:Q", **x.options(drawn))
    up = alt.Y(f"{y.key}:Q", **y.options(drawn))
    dash = alt.StrokeDash(
        f"{key}:N",
        sort=names,
        legend=None if points else legend,
        scale=alt.Scale(domain=names, range=DASHES[: len(names)]),
    )
    layers = [base.mark_line(strokeWidth=2).encode(x=across, y=up, color=colour, strokeDash=dash)]
    if points:
        shapes = alt.Scale(domain=names, range=SHAPES[: len(names)])
        shape = alt.Shape(f"{key}:N", sort=names, legend=legend, scale=shapes)
        layers.append(
            base.mark_point(filled=True, size=50, opacity=1).encode(x=across, y=up, color=colour, shape=shape)
        )
    if error is not None:
        low, high = (f"{end}:Q" for end in error)
        layers.append(base.mark_rule(strokeWidth=1.2).encode(x=across, y=low, y2=high, color=colour))
    return alt.layer(*layers).properties(width=width, height=height, title=title)


def bars(
    rows: Sequence[dict[str, Any]],
    category: tuple[str, str],
    value: Axis,
    *,
    title: str = "",
    error: tuple[str, str] | None = None,
    digits: str = ".2f",
    width: int = WIDTH,
) -> Any:
    """Draw horizontal bars with their numbers alongside, so they stay readable if print loses the colours."""
    import altair as alt

    key, name = category
    names = list(dict.fromkeys(str(row[key]) for row in rows))
    decimals = int(digits.strip(".f"))
    known = [row | {"text": figure(row[value.key], decimals)} for row in rows if row[value.key] is not None]
    base = alt.Chart(data(known))
    up = alt.Y(f"{key}:N", sort=names, title=name, axis=alt.Axis(labelLimit=260))
    if value.domain is None and not value.log:  # leave room for the numbers beside the bars
        value = dataclasses.replace(
            value, domain=(0.0, 1.2 * max(row[error[1] if error else value.key] for row in rows))
        )
    across = alt.X(f"{value.key}:Q", **value.options(rows))
    layers = [
        base.mark_bar(color=COLOURS[4], height={"band": 0.65}).encode(x=across, y=up),
        base.mark_text(align="left", dx=6, fontSize=11).encode(
            x=f"{error[1] if error else value.key}:Q", y=up, text="text:N"
        ),
    ]
    if error is not None:
        low, high = (f"{end}:Q" for end in error)
        layers.append(base.mark_rule(strokeWidth=1.5).encode(x=low, x2=high, y=up))
    return alt.layer(*layers).properties(width=width, height=24 * len(names), title=title)


def heat(
    rows: Sequence[dict[str, Any]],
    across: tuple[str, str],
    down: tuple[str, str],
    colour: Any,
    *,
    title: str = "",
    width: int = 200,
    height: int = 170,
) -> Any:
    """Draw a matrix as coloured cells with each row's `text` inside; `across` and `down` are keys with their titles."""
    import altair as alt

    base = alt.Chart(data(rows)).encode(
        x=alt.X(f"{across[0]}:O", title=across[1], axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{down[0]}:O", title=down[1]),
    )
    cells = base.mark_rect(stroke="#ccc").encode(color=colour)
    figures = base.mark_text(fontSize=11).encode(text="text:N")
    return alt.layer(cells, figures).properties(width=width, height=height, title=title)


def beside(*charts: Any, columns: int = 2) -> Any:
    """Lay out charts in a grid, each with its own scales and legend."""
    import altair as alt

    return alt.concat(*charts, columns=columns, spacing=36).resolve_scale(
        x="independent", y="independent", color="independent", shape="independent", strokeDash="independent"
    )


def dressed(drawing: Any, title: str) -> Any:
    """Add the title, fonts and sizes to a chart."""
    import altair as alt

    head = alt.TitleParams(text=wrapped(title), anchor="start", fontSize=16, offset=14)
    return drawing.properties(title=head, background="white").configure(
        font=FONT,
        axis=alt.AxisConfig(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#e4e4e4"),
        legend=alt.LegendConfig(labelFontSize=11, titleFontSize=12, labelLimit=280, titleLimit=280),
        title=alt.TitleConfig(fontSize=13, anchor="start", fontWeight="bold"),
        view=alt.ViewConfig(stroke="#bbb"),
        padding=12,
    )


def wrapped(text: str, columns: int = 100) -> list[str]:
    """Break a long title into lines; a Chinese character counts as two.

    >>> wrapped("short"), [len(line) for line in wrapped("长" * 50)]
    (['short'], [50])
    """
    if text.isascii() or " " in text.strip()[: columns // 2]:
        return textwrap.wrap(text, columns)
    step = columns // 2
    return [text[i : i + step] for i in range(0, len(text), step)]


def save(result: Result, path: Path, lang: Lang) -> None:
    """Write the chart as HTML (offline, with findings and tables), SVG or PNG, depending on the suffix."""
    drawing = result.chart(lang)
    match path.suffix.lower():
        case ".html":
            path.write_text(page(result, drawing, lang), encoding="utf-8")
        case ".svg":
            drawing.save(str(path), format="svg")
        case ".png":
            drawing.save(str(path), format="png", scale_factor=2)
        case other:
            raise ValueError(f"path must end in {', '.join(SUFFIXES)}, but it ends in {other!r}; rename it")


def page(result: Result, drawing: Any, lang: Lang) -> str:
    """Build one HTML file: the chart with its scripts inlined, the findings and the tables."""
    # Drop "open in editor": it is the only entry in the chart's menu that leaves the page.
    menu = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
    whole: str = drawing.to_html(inline=True, embed_options=menu)
    notes = "".join(f"<li>{html.escape(note.of(lang))}</li>" for note in result.notes)
    parts = [f"<ul>{notes}</ul>"]
    for table in result.readable:
        heads = "".join(f"<th>{html.escape(column.head(lang))}</th>" for column in table.columns)
        lines = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.texts(lang)
        )
        parts.append(f"<h2>{html.escape(table.title.of(lang))}</h2><div><table><tr>{heads}</tr>{lines}</table></div>")
    code = "zh-CN" if lang == "zh" else "en"
    head = f"<head><title>{html.escape(result.question.of(lang))}</title><style>{STYLE}</style>"
    # Match the first opening tags and the last closing tag: the inlined scripts contain such tags too.
    whole = whole.replace("<html>", f'<html lang="{code}">', 1).replace("<head>", head, 1)
    before, mark, after = whole.rpartition("</body>")
    return f"{before}<main>{''.join(parts)}</main>{mark}{after}"


STYLE = f"""
body {{ font-family: {FONT}; line-height: 1.5; color: #111; background: #fff; margin: 1.5rem; }}
main {{ max-width: 60rem; }} main div {{ overflow-x: auto; }}
h2 {{ font-size: 1.05rem; margin: 1.6rem 0 .4rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }}
th, td {{ border-bottom: 1px solid #ddd; padding: .25rem .7rem .25rem 0; text-align: left; white-space: nowrap; }}
th {{ border-bottom: 2px solid #888; }}
@media print {{ main div {{ overflow: visible; }} }}
"""
