"""The table of the patients' heads: drawn over and over on a terminal while they train, once at the end elsewhere."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from softscope.cli.layout import bar, pad, width
from softscope.doctor.case import Case
from softscope.doctor.states import NAMES

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.doctor.patients import Patient
    from softscope.doctor.snapshot import History

COLUMNS = (("patient", 14), ("step", 17), ("loss", 6), ("blocked", 8), ("transmission", 9), ("advantage", 13))
_CELLS = 12
_TONES = {
    "starving": "negative",
    "right": "code",
    "learning": "bar",
    "resting": "caution",
    "positional": "caution",
    "unjudged": "dim",
}


class Table:
    """One row a patient."""

    def __init__(self, console: Console, patients: tuple[Patient, ...], steps: int) -> None:
        self.console, self.steps = console, steps
        self.rows: dict[str, list[str]] = {patient.name: [patient.title.of(console.lang)] for patient in patients}
        self.done = dict.fromkeys(self.rows, 0)
        stream = console.stream
        self.live = stream is not None and stream is sys.stdout and stream.isatty() and console.colour
        self.drawn = False

    def progress(self, name: str, step: int, _of: int) -> None:
        """A step is done."""
        self.done[name] = step
        if self.live and (step % 2 == 0 or step == self.steps):
            self._draw()

    def read(self, name: str, history: History) -> None:
        """There is a new reading."""
        case = Case(history)
        (found,) = case.states.values()
        state = self.console.paint(NAMES[found.state].of(self.console.lang), _TONES[found.state])
        loss = history.snapshots[-1].loss
        self.rows[name][1:] = [
            "–" if loss is None else f"{loss:.2f}",
            f"{found.blocked:.0%}",
            f"{found.transmission:.1e}" if found.transmission < 0.01 else f"{found.transmission:.2f}",
            f"{found.advantage:.2f} ± {found.error:.2f}".replace("-", "−") if math.isfinite(found.error) else "–",
            state,
        ]

    def close(self) -> None:
        """The last state, which stays."""
        self._draw()

    def _draw(self) -> None:
        console = self.console
        if self.drawn:
            console.write(f"\x1b[{len(self.rows) + 2}A")  # back to the heading
        titles = [console.say(f"checkup.column.{name}") for name, _ in COLUMNS]
        heading = "".join(
            _cell(title, columns, i) for i, (title, (_, columns)) in enumerate(zip(titles, COLUMNS, strict=True))
        )
        console.write(console.paint(heading + "  " + console.say("checkup.column.state"), "dim") + self._end)
        for name, row in self.rows.items():
            share = self.done[name] / self.steps
            drawn = bar(share, _CELLS, console.blocks)
            step = console.paint(pad(drawn, _CELLS), "bar") + pad(
                str(self.done[name]), COLUMNS[1][1] - _CELLS, right=True
            )
            figures = "".join(_cell(x, COLUMNS[i][1], i) for i, x in enumerate(row[1:-1], start=2))
            state = "  " + row[-1] if len(row) > 1 else ""
            console.write(_cell(row[0], COLUMNS[0][1], 0) + step + figures + state + self._end)
        self.drawn = self.live

    @property
    def _end(self) -> str:
        return "\x1b[K" if self.live else ""


def _cell(text: str, columns: int, index: int) -> str:
    """Names to the left, figures to the right; what is too wide keeps a blank before it."""
    return pad(text, columns, right=index > 0) if width(text) <= columns else " " + text
