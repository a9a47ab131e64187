"""A progress bar, shown only on a terminal and only after the first second."""

from __future__ import annotations

import sys
import time
import unicodedata
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Item = TypeVar("Item")

CELLS = 30
PATIENCE = 1.0  # seconds before the bar appears


class ProgressBar:
    """A bar on stderr: call it with the share done, and call `wipe` at the end to clear the line."""

    def __init__(self, label: str = "", stream: TextIO | None = None) -> None:
        self.label, self.stream, self.start = label, sys.stderr if stream is None else stream, time.monotonic()
        self.drawn = ""

    def __call__(self, share: float) -> None:
        """Draw the bar at a share in [0, 1]."""
        waited = time.monotonic() - self.start
        if self.stream is None or waited < PATIENCE or not self.stream.isatty():
            return
        done = round(share * CELLS)
        line = f"{self.label} [{'#' * done}{'.' * (CELLS - done)}] {share:4.0%}"
        if line != self.drawn:
            self.stream.write("\r" + line)
            self.stream.flush()
            self.drawn = line

    def through(self, items: Sequence[Item], begin: float = 0.0, end: float = 1.0) -> Iterator[Item]:
        """Yield the items while the bar moves from `begin` to `end`."""
        for i, item in enumerate(items):
            self(begin + (end - begin) * i / len(items))
            yield item

    def wipe(self) -> None:
        """Clear the line if the bar was drawn."""
        if self.drawn:
            columns = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in self.drawn)
            self.stream.write("\r" + " " * columns + "\r")
            self.stream.flush()
