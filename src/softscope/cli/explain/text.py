"""The explanation as text: a table with bars, the readings and the sentences."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.cli import figures
from softscope.cli.explain.sentences import paragraphs
from softscope.cli.layout import bar, pad, width, wrap

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.cli.explain.measure import Explanation, Readings

Array = np.ndarray[Any, Any]

MOST_ENTRIES = 20
_GAP = "  "
_SHORTEST_BAR, _LONGEST_BAR = 6, 40


def show(e: Explanation, console: Console) -> None:
    """Print the explanation."""
    _head(e, console)
    _table(e, console)
    if "undefined" not in e.findings and len(e.row.logits) > 1:
        _readings(e, console)
    for paragraph in paragraphs(e, console.say):
        console.write()
        console.paragraph(paragraph)


def _head(e: Explanation, console: Console) -> None:
    row = e.row
    title = console.say(
        "head.one" if len(row.logits) == 1 else "head.many",
        map=e.map.title,
        temperature=figures.number(e.now.temperature),
        count=len(row.logits),
        source=console.say(f"source.{row.kind}", name=row.name),
    )
    for line in wrap(title, console.width):
        console.write(console.paint(line, "bold"))
    if row.rows is not None:
        key = "source.row" if row.chosen or len(row.rows) == 1 else "source.row.first"
        shape = " × ".join(map(str, row.shape))
        console.paragraph(console.say(key, row=row.index, rows=len(row.rows), shape=shape))
    console.write()


def _table(e: Explanation, console: Console) -> None:
    """Print one line per number; for a long row, only the largest weights."""
    order = _shown(e.now.weights)
    columns = _columns(e, order, console)
    full = _full_scale(e.now.weights[order])
    while (room := _room(columns, console)) < _SHORTEST_BAR and len(columns) > 3:
        columns.pop()
    size = max(_SHORTEST_BAR, min(_LONGEST_BAR, room))
    titles = [column.cells[0] for column in columns]
    axis = "0" + figures.number(full).rjust(size - 1)
    console.write(console.paint((_GAP + _GAP.join([*titles[:3], axis, *titles[3:]])).rstrip(), "dim"))
    for line, i in enumerate(order, 1):
        cells = [column.cells[line] for column in columns]
        drawn = _bar(float(e.now.weights[i]), full, size, console)
        console.write((_GAP + _GAP.join([*cells[:3], drawn, *cells[3:]])).rstrip())
    rest = len(e.now.weights) - len(order)
    if rest:
        share = float(np.sum(e.now.weights) - np.sum(e.now.weights[order]))
        key = "table.rest" if e.shares else "table.rest.bare"
        console.paragraph(console.say(key, shown=len(order), rest=rest, share=figures.percent(max(share, 0.0))))


def _room(columns: list[_Column], console: Console) -> int:
    """Return how many cells the columns leave for the bars."""
    return console.width - sum(column.width for column in columns) - len(_GAP) * (len(columns) + 1)


def _bar(value: float, full: float, size: int, console: Console) -> str:
    """Draw the weight as a bar on which `size` cells mean `full`."""
    drawn = pad(bar(0.0 if math.isnan(value) else value / full, size, console.blocks), size)
    return console.paint(drawn, "negative" if value < 0.0 else "bar")


def _columns(e: Explanation, order: list[int], console: Console) -> list[_Column]:
    """Return the columns beside the bars, title first: place, logit, weight, slope; if T is not 1, the T = 1 weight."""
    slope = e.now.response if e.map.logistic else e.now.slope
    columns = [
        _Column("#", [str(i + 1) for i in order], right=True),
        _Column(console.say("column.logit"), figures.decimals(e.row.logits[order].tolist()), right=True),
        _weights(console.say("column.weight"), e.now.weights[order]),
        _weights(console.say("column.logistic" if e.map.logistic else "column.slope"), slope[order]),
    ]
    if e.now.temperature != 1.0:
        columns.append(_weights(console.say("column.plain"), e.plain.weights[order]))
    return columns


class _Column:
    """A title and texts padded to one width: figures align right; weights, which all start alike, align left."""

    def __init__(self, title: str, texts: list[str], right: bool = False) -> None:
        self.width = max(map(width, [title, *texts]))
        self.cells = [pad(text, self.width, right) for text in (title, *texts)]


def _weights(title: str, values: Array) -> _Column:
    texts = [figures.weight(float(value)) for value in values]
    sign = " " if any(text.startswith("-") for text in texts) else ""
    return _Column(title, [text if text.startswith("-") else sign + text for text in texts])


def _shown(weights: Array) -> list[int]:
    """Choose the places to show: all in order, or for a long row the largest weights, largest first."""
    if len(weights) <= MOST_ENTRIES:
        return list(range(len(weights)))
    order = np.argsort(-weights, kind="stable")
    return [int(i) for i in order[:MOST_ENTRIES]]


def _full_scale(weights: Array) -> float:
    """Choose what a full bar means: 1, or the first of 0.5, 0.2, 0.1, … (2, 5, 10, …) that fits the largest weight."""
    largest = float(np.max(np.abs(weights)))
    if not 1e-300 < largest < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= largest * (1.0 - 1e-9))


def _readings(e: Explanation, console: Console) -> None:
    """Print the row's readings; if T is not 1, print those at T = 1 too."""
    weighings = [e.now] if e.now.temperature == 1.0 else [e.now, e.plain]
    rows = [("", [f"T = {figures.number(w.temperature)}" for w in weighings])] if len(weighings) > 1 else []
    for key in ("entropy", "effective_support", "peak", "sharpness", "jacobian_trace", "weight_sum"):
        if not _applies(key, e):
            continue
        label = console.say(f"reading.{key}", n=len(e.row.logits), full=f"{math.log(len(e.row.logits)):.4f}")
        rows.append((label, [_value(key, w.readings) for w in weighings]))
    labels = max(width(label) for label, _ in rows)
    values = [max(width(row[1][i]) for row in rows) for i in range(len(weighings))]
    if len(_GAP) * (1 + len(values)) + labels + sum(values) > console.width:  # no room for the part in brackets
        rows = [(re.sub(r" ?[(（].*", "", label), texts) for label, texts in rows]
        labels = max(width(label) for label, _ in rows)
    console.write()
    for label, texts in rows:
        cells = [pad(text, values[i]) for i, text in enumerate(texts)]
        line = _GAP + pad(label, labels) + _GAP + _GAP.join(cells)
        console.write(console.paint(line.rstrip(), "dim") if not label else line.rstrip())


def _applies(key: str, e: Explanation) -> bool:
    """Decide whether to show a reading: Σ s(1−s) is softmax's, the sum matters if it is not 1, others need shares."""
    if key == "weight_sum":
        return "sum_not_one" in e.findings
    if key == "jacobian_trace":
        return e.map.name == "softmax"
    return e.shares or key == "peak"


def _value(key: str, readings: Readings) -> str:
    value = getattr(readings, key)
    if key == "effective_support":
        return f"{value:.3f}" if value < 100.0 else f"{value:.1f}"
    return figures.percent(value) if key == "peak" else figures.weight(value)
