"""The picture of lesson 9: which key each model reads, for every key it is asked for, as it trains."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import marimo as mo

from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softscope._text import Lang
    from softscope.lab.patient import Look

RIGHT, WRONG = "0 158 115", "213 94 0"
ASKED = Text(zh="问的键", en="asked for")
STEP = Text(zh="步", en="step")
FOUND = Text(zh="读对 {right} / {all}", en="reads {right} of {all} right")


def reads(models: Mapping[str, Sequence[Look]], lang: Lang) -> Any:
    """Draw a grid for each model: rows are keys asked for, columns are steps, a cell names the key read most."""
    grids = "".join(_grid(name, looks, lang) for name, looks in models.items() if looks)
    return mo.Html(f'<div class="lab-matrices lab-reads">{grids}</div>')


def _grid(name: str, looks: Sequence[Look], lang: Lang) -> str:
    last = looks[-1]
    found = FOUND.of(lang).format(right=last.right, all=len(last.keys))
    heads = "".join(f"<th>{look.step}</th>" for look in looks)
    lines = [f"<tr><th>{ASKED.of(lang)} ╲ {STEP.of(lang)}</th>{heads}</tr>"]
    for asked in range(len(last.keys)):
        cells = "".join(_cell(asked, look.keys[asked], look.weights[asked]) for look in looks)
        lines.append(f"<tr><th>{asked}</th>{cells}</tr>")
    title = f"<span><b>{html.escape(name)}</b> · {found}</span>"
    return f'<div class="lab-matrix">{title}<table>{"".join(lines)}</table></div>'


def _cell(asked: int, read: int, weight: float) -> str:
    colour = RIGHT if read == asked else WRONG
    kind = "right" if read == asked else "wrong"
    return f'<td class="{kind}" title="{weight:.2f}" style="background:rgb({colour} / {0.7 * weight:.2f})">{read}</td>'
