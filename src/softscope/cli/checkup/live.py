"""The table of the patients' heads: redrawn on a terminal while they train; elsewhere, printed once at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from softscope.cli.layout import bar, pad, width
from softscope.doctor.judge.history_view import HistoryView
from softscope.doctor.judge.states import NAMES, STATES

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.doctor.judge.states import StateName
    from softscope.doctor.patients import Patient
    from softscope.doctor.read.snapshot import History

# Name and width of each column; the bar has no title, and the state comes last, with nothing to its right.
COLUMNS = {
    "patient": 14, "bar": 12, "step": 5, "loss": 6, "blocked": 8, "transmission": 9, "advantage": 14, "state": 10
}  # fmt: skip
_SPARED = ("transmission", "bar", "loss", "advantage")  # columns to drop on a narrow terminal, in this order


_TONES = {
    "starving": "negative",
    "right": "code",
    "learning": "bar",
    "useful": "code",
    "resting": "caution",
    "idle": "caution",
    "positional": "caution",
    "uniform": "caution",
    "empty": "caution",
    "suspected": "caution",
    "unjudged": "dim",
}


class Table:
    """The table, with one row per patient."""

    def __init__(self, console: Console, patients: tuple[Patient, ...], steps: int) -> None:
        self.console, self.steps = console, steps
        self.rows = {patient.name: {"patient": patient.title.of(console.lang)} for patient in patients}
        self.done = dict.fromkeys(self.rows, 0)
        self.columns = _fitting(console.width)
        stream = console.stream
        self.live = stream is not None and stream is sys.stdout and stream.isatty() and console.colour
        self.drawn = False

    def progress(self, name: str, step: int, _of: int) -> None:
        """Record that a step is done."""
        self.done[name] = step
        if self.live and (step % 2 == 0 or step == self.steps):
            self._draw()

    def read(self, name: str, history: History) -> None:
        """Record a new reading."""
        (found,) = HistoryView(history).states.values()
        loss = history.snapshots[-1].loss
        self.rows[name] |= {
            "loss": "–" if loss is None else f"{loss:.2f}",
            "blocked": f"{found.blocked:.0%}",
            "transmission": f"{found.transmission:.1e}" if found.transmission < 0.01 else f"{found.transmission:.2f}",
            "advantage": f"{found.advantage:.2f} ± {found.error:.2f}".replace("-", "−"),
            "state": found.state,
        }

    def judged(self, name: str, state: StateName) -> None:
        """Record the state after the trial, which decides."""
        self.rows[name]["state"] = state

    def close(self) -> None:
        """Draw the final state, which stays on screen."""
        self._draw()

    def _draw(self) -> None:
        console = self.console
        end = "\x1b[K" if self.live else ""
        if self.drawn:
            console.write(f"\x1b[{len(self.rows) + 2}A")  # back up to the heading
        titles = {name: "" if name == "bar" else console.say(f"checkup.column.{name}") for name in self.columns}
        heading = "".join(_cell(name, title) for name, title in titles.items())
        console.write(console.paint(heading.rstrip(), "dim") + end)
        for name, row in self.rows.items():
            drawn = {
                **row,
                "bar": bar(self.done[name] / self.steps, COLUMNS["bar"], console.blocks),
                "step": str(self.done[name]),
            }
            console.write(
                "".join(self._painted(column, drawn.get(column, "")) for column in self.columns).rstrip() + end
            )
        self.drawn = self.live

    def _painted(self, column: str, text: str) -> str:
        if column == "bar":
            return self.console.paint(_cell(column, text), "bar")
        if column != "state" or not text:
            return _cell(column, text)
        state = next(state for state in STATES if state == text)
        return "  " + self.console.paint(NAMES[state].of(self.console.lang), _TONES[state])


def _fitting(columns: int) -> tuple[str, ...]:
    """Choose the columns that fit a terminal.

    >>> len(_fitting(80)), _fitting(40)
    (8, ('patient', 'step', 'blocked', 'state'))
    """
    kept = list(COLUMNS)
    for name in _SPARED:
        if sum(COLUMNS[column] for column in kept) + 2 > columns:
            kept.remove(name)
    return tuple(kept)


def _cell(name: str, text: str) -> str:
    """Align figures right and everything else left; text that is too wide keeps a space before it."""
    if name == "state":
        return "  " + text
    return (
        pad(text, COLUMNS[name], right=name not in ("patient", "bar")) if width(text) <= COLUMNS[name] else " " + text
    )
