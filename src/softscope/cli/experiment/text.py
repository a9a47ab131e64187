"""A result on the terminal: findings first, then the tables, each fitted to the console's width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.cli.layout import pad, width, wrap

if TYPE_CHECKING:
    import pathlib

    from softscope.cli.console import Console
    from softscope.experiments import Result, Table

_GAP = "  "
_HEADS = (24, 18, 14, 10, 6)  # widths at which to wrap a heading; we take the widest that fits


def catalogue(console: Console) -> None:
    """List every experiment: name, time, question."""
    from softscope.experiments import NAMES, entry

    columns = max(map(width, NAMES))
    for name in NAMES:
        known = entry(name)
        time = console.say("experiment.seconds", seconds=f"{known.seconds:.0f}" if known.seconds >= 1.0 else "< 1")
        first = console.paint(pad(name, columns), "code") + _GAP + pad(time, 6, right=True) + _GAP
        blanks = " " * (columns + 6 + 2 * len(_GAP))
        lines = wrap(known.question.of(console.lang), console.width, blanks)
        console.write(first + lines[0][len(blanks) :])
        for line in lines[1:]:
            console.write(line)
    console.write()
    console.paragraph(console.say("experiment.list.next"), "")


def show(result: Result, plot: pathlib.Path | None, console: Console) -> None:
    """Print the question, findings and tables, and where the chart went."""
    for line in wrap(result.question.of(console.lang), console.width):
        console.write(console.paint(line, "bold"))
    console.write()
    for note in result.notes:
        console.paragraph(note.of(console.lang), "• " if console.blocks else "* ", "  ")
    for table in result.readable:
        console.write()
        for line in wrap(table.title.of(console.lang), console.width):
            console.write(console.paint(line, "bold"))
        for i, part in enumerate(_parts(table, console)):
            if i:
                console.write()
            _write(part, console)
    console.write()
    folded = [
        console.say("experiment.folded.rows", table=table.key, rows=len(table.rows))
        for table in result.tables
        if table.dense
    ]
    if folded:
        between = Text(en=", ", zh="、").of(console.lang)
        console.paragraph(console.say("experiment.folded", tables=between.join(folded)), "")
    key = "experiment.done" if plot is None else "experiment.done.plot"
    seconds = f"{result.seconds:.1f}"
    console.paragraph(console.say(key, seconds=seconds, seed=result.settings["seed"], path=plot), "")


class _Column:
    """A heading split into lines, the cell texts, and the width that both need."""

    def __init__(self, head: str, texts: list[str], right: bool, room: int) -> None:
        longest = max(map(width, texts), default=0)
        self.head = wrap(head, max(longest, room))
        self.width = max(longest, *map(width, self.head))
        self.texts, self.right = texts, right


def _parts(table: Table, console: Console) -> list[list[_Column]]:
    """Split the columns into as many tables as needed; each starts with the columns that identify the rows."""
    texts = table.texts(console.lang)
    for room in _HEADS:
        columns = [
            _Column(column.head(console.lang), [row[i] for row in texts], not column.label and _figures(texts, i), room)
            for i, column in enumerate(table.columns)
        ]
        if _total(columns) <= console.width:
            return [columns]
    names = [part for part, column in zip(columns, table.columns, strict=True) if column.label]
    rest = [part for part, column in zip(columns, table.columns, strict=True) if not column.label]
    parts = [[*names]]
    for column in rest:
        if len(parts[-1]) > len(names) and _total([*parts[-1], column]) > console.width:
            parts.append([*names])
        parts[-1].append(column)
    return parts


def _figures(texts: list[list[str]], i: int) -> bool:
    """Check whether a column holds numbers, which we right-align."""
    return all(row[i][:1].isdigit() or row[i][:1] in "-−–✓✗" for row in texts)


def _total(columns: list[_Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * len(columns)


def _write(columns: list[_Column], console: Console) -> None:
    height = max(len(column.head) for column in columns)
    for line in range(height):
        cells = [
            pad(head[line - height] if len(head) >= height - line else "", column.width, column.right)
            for column in columns
            for head in [column.head]
        ]
        console.write(console.paint((_GAP + _GAP.join(cells)).rstrip(), "dim"))
    for i in range(len(columns[0].texts)):
        cells = [pad(column.texts[i], column.width, column.right) for column in columns]
        console.write((_GAP + _GAP.join(cells)).rstrip())
