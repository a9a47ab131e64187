"""The frame shared by all lesson pages: language, head with objectives, tables, matrices, charts, foot with summary.

A notebook starts with

    page = Page("overflow", mo.query_params().get("lang"))
    t = page.t

and writes every text as `t(zh="中文", en="English")`.
"""

from __future__ import annotations

import functools
import html
import re
from typing import TYPE_CHECKING, Any

import marimo as mo
import numpy as np

from softscope.experiments import chart as _chart
from softscope.experiments import run
from softscope.experiments.table import figure as figure
from softscope.experiments.table import shown
from softscope.lab import progress
from softscope.lab.course import after, lesson
from softscope.lab.language import chosen
from softscope.lab.theme import buttons

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softscope.experiments import Result

WARM, COLD = "213 94 0", "0 114 178"  # orange above 0, blue below


class Page:
    """One lesson in one language."""

    def __init__(self, name: str, lang: object = None) -> None:
        self.lesson = lesson(name)
        self.lang = chosen(lang)
        self.hints: dict[str, Any] = {}  # of each exercise on the page
        progress.current().open(name)

    def t(self, *, zh: str, en: str) -> str:
        """Return the text in the page's language."""
        return zh if self.lang == "zh" else en

    def head(self, *objectives: str) -> Any:
        """Show the link back, the language switch, the title and the lesson's objectives."""
        t, lesson = self.t, self.lesson
        other, name = ("en", "English") if self.lang == "zh" else ("zh", "中文")
        items = "".join(f"<li>{mo.md(one).text}</li>" for one in objectives)
        return mo.Html(
            f'<div class="lab-bar"><a href="/?lang={self.lang}" target="_self">'
            f"← {t(zh='所有课程', en='All lessons')}</a>"
            f'<div class="lab-choices">{buttons(progress.current().theme, self.lang, lesson.name)}'
            f'<a href="?lang={other}" target="_self" hreflang="{other}">{name}</a></div></div>'
            f'<h1 class="lab-title">{html.escape(lesson.title.of(self.lang))}</h1>'
            f'<p class="lab-meta">{t(zh="第", en="Lesson ")}{lesson.number}{t(zh="课", en="")} · '
            f"{t(zh='约', en='about')} {lesson.minutes} {t(zh='分钟', en='minutes')}</p>"
            f'<div class="lab-box"><strong>{t(zh="学完之后，你能", en="After this lesson you can")}</strong>'
            f"<ul>{items}</ul></div>"
        )

    def foot(self, *summary: str) -> Any:
        """Show what to remember, a switch to mark the lesson done, and a link to the next one."""
        t, name = self.t, self.lesson.name
        items = "".join(f"<li>{mo.md(one).text}</li>" for one in summary)
        following = after(name)
        if following is None:
            link = f'<a href="/?lang={self.lang}" target="_self">{t(zh="回到课程目录", en="Back to all lessons")} →</a>'
        else:
            title = html.escape(following.title.of(self.lang))
            link = (
                f'<a href="/lesson/{following.name}/?lang={self.lang}" target="_self">'
                f"{t(zh='下一课：', en='Next: ')}{title} →</a>"
            )
        # Keep a reference: marimo holds its elements weakly, and a collected one gets no clicks.
        self.done = mo.ui.switch(
            value=progress.current().state(name) == "done",
            label=t(zh="这一课学完了", en="I have finished this lesson"),
            on_change=lambda value: progress.current().finish(name, value),
        )
        head = f"<strong>{t(zh='小结', en='Summary')}</strong>"
        return mo.vstack(
            [
                mo.Html(f'<div class="lab-box">{head}<ul>{items}</ul></div>'),
                self.done,
                mo.Html(f'<p class="lab-next">{link}</p>'),
            ]
        )

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 3) -> Any:
        """Show a plain table; a number that is not 0 or 1 never rounds to 0 or 1."""
        top = "".join(f"<th>{_cell(head)}</th>" for head in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(shown(cell, self.lang, digits))}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        return mo.Html(
            f'<div class="lab-scroll" tabindex="0"><table class="lab-table"><tr>{top}</tr>{body}</table></div>'
        )

    def measured(self, name: str, *keys: str, notes: bool = True, **options: Any) -> Any:
        """Show an experiment's findings and some of its tables; it runs once per process."""
        result = measured(name, **options)
        parts: list[Any] = []
        if notes:
            parts.append(mo.md("\n".join(f"- {note.of(self.lang)}" for note in result.notes)))
        for key in keys:
            found = result[key]
            parts.append(mo.md(f"**{found.title.of(self.lang)}**"))
            heads = [column.head(self.lang) for column in found.columns]
            parts.append(self.table(heads, found.texts(self.lang)))
        return mo.vstack(parts)

    def details(self, *parts: Any, title: str = "") -> Any:
        """Fold away what only some readers want: full tables, standard errors, rounding."""
        return mo.accordion({title or self.t(zh="细节", en="Details"): mo.vstack(list(parts))})

    def matrix(
        self,
        title: str,
        values: Any,
        digits: int = 2,
        *,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        top: float | None = None,
    ) -> str:
        """Return a matrix as a coloured HTML grid; `side_by_side` puts several on one line.

        Args:
            title: what stands above it.
            values: its numbers.
            digits: decimals of each number.
            rows: a name for each row, or none.
            columns: a name for each column, or none.
            top: the size that gets the deepest colour; by default the largest here.
        """
        numbers = np.atleast_2d(np.asarray(values, dtype=float))
        finite = np.abs(numbers[np.isfinite(numbers)])
        top = top or (float(finite.max()) if finite.size and finite.max() > 0 else 1.0)
        names = [f"<th>{_cell(name)}</th>" for name in rows] or [""] * len(numbers)
        lines = [
            f"<tr>{name}{''.join(_square(x, top, digits) for x in row)}</tr>"
            for name, row in zip(names, numbers, strict=True)
        ]
        if columns:
            corner = "<th></th>" if rows else ""
            lines.insert(0, f"<tr>{corner}{''.join(f'<th>{_cell(name)}</th>' for name in columns)}</tr>")
        return f'<div class="lab-matrix"><span>{_cell(title)}</span><table>{"".join(lines)}</table></div>'

    def side_by_side(self, *parts: str) -> Any:
        """Put matrices and the signs between them on one line, which wraps on a phone."""
        return mo.Html(f'<div class="lab-matrices">{"".join(f"<div>{part}</div>" for part in parts)}</div>')

    def draw(self, drawing: Any) -> Any:
        """Draw a chart in the lab's fonts, as wide as the column; the page's theme decides its text and background."""
        if hasattr(drawing, "encoding") or hasattr(drawing, "layer"):  # a grid of charts has no width of its own
            drawing = drawing.properties(width="container")
        plain = drawing.properties(usermeta={"embedOptions": {"actions": False}})  # its menu links to other machines
        return (
            plain.configure(font=_chart.FONT, background="transparent")
            .configure_view(stroke=None)
            .configure_axis(gridOpacity=0.35)
            .configure_legend(orient="bottom", columns=2, labelLimit=240)
        )


@functools.cache
def _measured(name: str, options: tuple[tuple[str, Any], ...]) -> Result:
    return run(name, **dict(options))


def measured(name: str, **options: Any) -> Result:
    """Return an experiment's result, cached so that a second page reuses the first page's run."""
    return _measured(name, tuple(sorted(options.items())))


def slopes(weights: Any) -> Any:
    """Compute s(1−s) of each weight as s times the sum of the others: near one-hot, 1 − s itself would round to 0.

    >>> slopes([0.5, 0.5])
    array([0.25, 0.25])
    """
    s = np.asarray(weights, dtype=float)
    return s * np.where(np.eye(len(s), dtype=bool), 0.0, s).sum(-1)


def figures(values: Iterable[float], digits: int = 3) -> str:
    """Format a row of numbers in brackets.

    >>> figures([0.5, 0.25, 0.25])
    '[0.500, 0.250, 0.250]'
    """
    return "[" + ", ".join(figure(value, digits) for value in values) + "]"


_POWER = re.compile(r"\S*\de-\d+")


def _cell(text: str) -> str:
    """Escape text for a table cell; keep 1e-16 from breaking at its hyphen."""
    if text.startswith("<"):
        return text
    return _POWER.sub(r'<span class="lab-number">\g<0></span>', html.escape(text))


def _square(value: float, top: float, digits: int) -> str:
    if not np.isfinite(value):
        return f'<td style="opacity:.5">{"−∞" if value < 0 else value}</td>'
    strength = 0.75 * abs(value) / top
    colour = WARM if value > 0 else COLD
    return f'<td style="background:rgb({colour} / {strength:.2f})">{figure(value, digits)}</td>'
