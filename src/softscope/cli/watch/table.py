"""A snapshot on the terminal: one row per site, one cell per head with a number and the letter of its state."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from softscope.cli.figures import UNDEFINED, number
from softscope.cli.layout import pad, width, wrap
from softscope.cli.problems import shown
from softscope.cli.watch.ranks import sentence
from softscope.cli.watch.states import counts, legend, letter, rank, style
from softscope.doctor.judge.history_view import Head
from softscope.doctor.judge.states import NAMES

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Mapping, Sequence

    from softscope.cli.console import Console
    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.read.snapshot import Site, Snapshot
    from softscope.doctor.record import News

_CELL = 5  # columns: one for the gap, three for the number, one for the letter


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a frame or a line shows: a snapshot, its sites, and the state of every head; no states if unknown."""

    sites: Sequence[Site]
    snapshot: Snapshot
    states: Mapping[Head, HeadState]

    def state(self, site: int, head: int) -> str:
        """Return the state of a head."""
        judged = self.states.get(Head(site, head))
        return "unjudged" if judged is None else judged.state


def frame(path: pathlib.Path, seen: Shown | None, console: Console, most: int | None = None) -> list[str]:
    """Return all lines of one frame, at most `most` of them."""
    if seen is None:
        return _text(console.say("watch.nothing", path=shown(path.name)), console, "bold")
    last = seen.snapshot
    lines = _text(f"{shown(path.name)}  {_counted(last, console)}", console, "bold")
    lines += _text(console.say(f"watch.what.{_shown(last)}"), console)
    if not seen.sites:
        return lines
    columns = _Columns.of(seen.sites, last, console)
    lines += _ruler(seen.sites, columns, console)
    rows = [_rows(index, columns, seen, console) for index in range(len(seen.sites))]
    letters = _text(legend(seen.states, console), console) if last.has_loss and seen.states else []
    room = None if most is None else max(1, most - len(lines) - len(letters) - 2)  # other lines may follow below
    kept = _kept(rows, seen, room)
    lines += [line for index in kept for line in rows[index]]
    if len(kept) < len(rows):
        lines += _text(console.say("watch.hidden", count=len(rows) - len(kept)), console, "dim")
    return lines + letters


def line(seen: Shown, console: Console) -> str:
    """Format a snapshot as one line of text."""
    snapshot = seen.snapshot
    start = f"{_counted(snapshot, console)}  "
    values = [(value, site.name, head) for index, site in enumerate(seen.sites)
              for head, value in enumerate(_values(snapshot, index, site)) if not math.isnan(value)]  # fmt: skip
    if not values:
        return start + console.say("watch.line.nothing")
    value, site, head = max(values)
    worst = {"value": _percent(value) + "%", "site": shown(site), "head": head}
    if _shown(snapshot) == "still":
        return start + console.say("watch.line.still", **worst)
    told = [console.say("watch.line.state", state=NAMES[name], count=n) for name, n in counts(seen.states).items()]
    return start + console.say("watch.line.moving", states=" · ".join(told), **worst)


def ranks(facts: Mapping[str, Any], console: Console) -> list[str]:
    """Return the text about the ranks of a run, if it has several."""
    text, behind = sentence(facts, console)
    return _text(text, console, "caution" if behind else "dim") if text else []


def end(seen: News, console: Console) -> list[str]:
    """Return the text for the end of a run."""
    if seen.gone is not None:
        return _text(console.say("watch.gone", ago=_span(seen.gone, console)), console)
    key = "watch.ended.error" if seen.ended else "watch.ended"
    return _text(console.say(key, error=shown(seen.ended or "")), console)


def _span(seconds: float, console: Console) -> str:
    """A span of time in the largest unit of which it has two."""
    units = {"watch.ago.days": 86400, "watch.ago.hours": 3600, "watch.ago.minutes": 60, "watch.ago.seconds": 1}
    key = next((key for key, size in units.items() if seconds >= 2 * size), "watch.ago.seconds")
    return console.say(key, count=int(seconds // units[key]))


def waiting(seconds: float, patience: float, console: Console) -> list[str]:
    """Return the text below the table while the run goes on."""
    text = console.say("watch.stop")
    if seconds > patience:
        text = console.say("watch.silent", seconds=f"{seconds:.0f}") + text
    return _text(text, console, "dim")


def _shown(snapshot: Snapshot) -> str:
    """Without a loss we cannot tell what is blocked, so show sharpness, which is not a verdict."""
    return "moving" if snapshot.has_loss else "still"


def _values(snapshot: Snapshot, index: int, site: Site) -> list[float]:
    """Return the displayed value of each head of a site."""
    name = "blocked" if snapshot.has_loss else "sharpness"
    reading = snapshot.readings.get(name)
    return [math.nan] * site.heads if reading is None else [float(value) for value in reading[index, : site.heads]]


def _text(text: str, console: Console, style: str = "") -> list[str]:
    """Wrap text to the console's width: to redraw in place, we must know the number of lines."""
    return [console.paint(part, style) if style else part for part in wrap(text, console.width)]


def _counted(snapshot: Snapshot, console: Console) -> str:
    key = "watch.step" if snapshot.loss is None else "watch.step.loss"
    loss = (
        UNDEFINED
        if snapshot.loss is None
        else "NaN"
        if math.isnan(snapshot.loss)
        else number(float(f"{snapshot.loss:.4g}"))
    )
    return console.say(key, step=snapshot.step, loss=loss, seconds=f"{snapshot.seconds:.1f}")


@dataclasses.dataclass(frozen=True)
class _Columns:
    """How the columns share the width: names, then cells, then the smallest transmission."""

    names: int
    across: int  # cells per line
    tail: int

    @classmethod
    def of(cls, sites: Sequence[Site], last: Snapshot, console: Console) -> _Columns:
        names = min(max(width(shown(site.name)) for site in sites), console.width // 3)
        tail = max(len(_least(last, index, site)) for index, site in enumerate(sites))
        room = console.width - names - 1 - (tail + 2 if tail else 0)
        return cls(names, max(1, min(room // _CELL, max(site.heads for site in sites))), tail)

    def line(self, name: str, cells: Sequence[str], tail: str = "") -> str:
        """Lay out one line; each cell is four columns wide, whatever its colours."""
        blanks = " " * (_CELL * (self.across - len(cells)))
        return (
            pad(_shortened(name, self.names), self.names) + "".join(" " + c for c in cells) + blanks + "  " + tail
        ).rstrip()


def _rows(index: int, columns: _Columns, seen: Shown, console: Console) -> list[str]:
    """Return the name, a cell per head over as many lines as needed, and the smallest transmission."""
    site, last = seen.sites[index], seen.snapshot
    values = enumerate(_values(last, index, site))
    cells = [_cell(value, seen.state(index, head) if last.has_loss else "unjudged", console) for head, value in values]
    lines = [
        columns.line("", cells[start : start + columns.across])
        for start in range(columns.across, len(cells), columns.across)
    ]
    return [columns.line(shown(site.name), cells[: columns.across], _least(last, index, site)), *lines]


def _ruler(sites: Sequence[Site], columns: _Columns, console: Console) -> list[str]:
    """Return the heads' numbers, if each head has its own column."""
    heads = max(site.heads for site in sites)
    numbers = [pad(str(head), 3, right=True) + " " for head in range(heads)]
    return [console.paint(columns.line("", numbers), "dim")] if heads <= columns.across else []


def _least(last: Snapshot, index: int, site: Site) -> str:
    reading = last.readings.get("transmission")
    known = [] if reading is None else [float(x) for x in reading[index, : site.heads] if not math.isnan(x)]
    return f"{min(known):.2g}" if known else ""


def _cell(value: float, state: str, console: Console) -> str:
    """Format a cell so that number and letter alone say everything, even without colour."""
    text = pad(_percent(value), 3, right=True) + letter(state)
    return console.paint(text, "dim" if math.isnan(value) else style(state))


def _percent(share: float) -> str:
    """Format as whole percent; 0 and 100 mean exactly none and all.

    >>> [_percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0, math.nan)]
    ['0', '<1', '50', '>99', '100', '–']
    """
    if math.isnan(share):
        return UNDEFINED
    if 0.0 < share < 0.01:
        return "<1"
    return ">99" if 0.99 < share < 1.0 else f"{100.0 * share:.0f}"


def _shortened(name: str, room: int) -> str:
    """Keep the end of a long name: all the names share the beginning.

    >>> _shortened("model.layers.11.self_attn", 15)
    '…s.11.self_attn'
    """
    return name if width(name) <= room else "…" + name[len(name) - room + 1 :]


def _kept(rows: list[list[str]], seen: Shown, room: int | None) -> list[int]:
    """Choose the sites that fit: the worst ones, in the model's order."""
    if room is None or sum(map(len, rows)) <= room:
        return list(range(len(rows)))

    def order(index: int) -> tuple[int, float]:
        """A head that rests is sharper than one that starves, and yet not worse."""
        values = _values(seen.snapshot, index, seen.sites[index])
        worst = min((rank(seen.state(index, head)) for head in range(len(values))), default=0)
        return worst, -max((value for value in values if not math.isnan(value)), default=-1.0)

    kept: list[int] = []
    for index in sorted(range(len(rows)), key=order):
        if sum(len(rows[i]) for i in (*kept, index)) > room:
            break
        kept.append(index)
    return sorted(kept)
