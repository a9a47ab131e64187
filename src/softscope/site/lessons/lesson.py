"""One lesson as a page: its cells in order, alive where they can be."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, NamedTuple

from marimo._plugins.ui._core.ui_element import UIElement

from softscope._text import Text
from softscope.lab.course import lesson
from softscope.site import frame, front, pictures
from softscope.site.lessons import quiz, trainer
from softscope.site.lessons.controls import Plan, stops
from softscope.site.lessons.convert import Converter
from softscope.site.lessons.run import Cell, Run

if TYPE_CHECKING:
    from softscope._text import Lang

STALE = Text(
    zh="以上文字算的是图形开始时的样子；拖动之后的数看图。",
    en="The text above was computed for the picture as it starts; after dragging, read the picture.",
)
# Lessons whose controls are replaced by something that computes in the page.
REPLACED = {"patient": trainer.section, "mistakes": quiz.section}
SCRIPTS = {"patient": ("maths.js", "head.js", "trainer.js"), "mistakes": ("quiz.js",)}


class Made(NamedTuple):
    """A page, and the files in `assets/` that it needs beyond the shared ones."""

    html: str
    assets: dict[str, str]


def page(site: frame.Frame, name: str, lang: Lang) -> Made:
    """Run a lesson and return its page."""
    found, here = lesson(name), f"lessons/{name}.html"
    run = Run(found, lang)
    # A control that moves nothing on the page, but a picture by way of Python, would be dead here.
    moves = {control for cell in run.cells if cell.shows for control in cell.controls}
    controls = {
        key: value
        for key, value in run.names.items()
        if key in moves and isinstance(value, UIElement) and len(stops(value)) > 1
    }
    replaced = REPLACED.get(name)
    plan = Plan({} if replaced else controls, [] if replaced else [cell.controls for cell in run.cells if cell.shows])
    converter = Converter(lang, here, plan)
    charts = _Charts()
    parts: list[str] = []
    for cell in run.cells:
        if replaced and (cell.elements or cell.makes):
            parts.append(replaced(lang) if replaced not in charts.done else "")
            charts.done.add(replaced)
        elif not cell.shows:
            continue
        elif cell.controls:
            parts.append(_replayed(run, cell, plan, converter, charts))
        else:
            parts.append(_follows(cell, converter.html(cell.shows, run.names), lang))
    parts.insert(1, f'<p class="quiet">{front.full(lang)}</p>')
    assets = {f"{kind}.js": pictures.script(widget) for kind, widget in converter.widgets.items()}
    body = "\n".join(f"<section>{part}</section>" for part in parts if part) + charts.table()
    scripts = [*assets, "pictures.js", "replay.js", *SCRIPTS.get(name, ())]
    styles = ("pictures.css", "lesson.css")
    return Made(site.page(lang, here, found.title.of(lang), body, scripts=scripts, styles=styles), assets)


class _Charts:
    """Charts of states that do not show at first: each is kept once for the page."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}
        self.done: set[object] = set()

    def place(self, drawn: str) -> str:
        number = self.kept.setdefault(drawn, len(self.kept))
        return f'<figure class="chart" data-chart="{number}"></figure>'

    def table(self) -> str:
        return f"\n{_data('charts', list(self.kept))}" if self.kept else ""


def _replayed(run: Run, cell: Cell, plan: Plan, converter: Converter, charts: _Charts) -> str:
    """Show a cell with the values its controls start with, and keep what it shows with the others."""
    shows: dict[str, int] = {}
    states = {}
    for name, values in plan.states(cell.controls):
        made = converter.html(*run.again(cell, values), chart=charts.place)
        states[name] = shows.setdefault(made, len(shows))
    first = converter.html(cell.shows, run.names)
    kept = _data(f"replay-{cell.id}", {"controls": cell.controls, "states": states, "shows": list(shows)})
    return f'<div class="replay" data-replay="replay-{cell.id}">{_follows(cell, first, converter.lang)}</div>{kept}'


def _follows(cell: Cell, shown: str, lang: Lang) -> str:
    if not cell.pictures:
        return shown
    names = html.escape(" ".join(cell.pictures))
    return f'<div data-follows="{names}">{shown}<p class="quiet stale-note">{STALE.of(lang)}</p></div>'


def _data(name: str, value: object) -> str:
    """Return data for a script of the page; nothing in it can close the element."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f'<script type="application/json" id="{name}">{written}</script>'
