"""When a run tries its suspected heads by itself, and how much of its time that may take."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any


@dataclasses.dataclass
class Schedule:
    """Trials at least `every` steps apart that together take at most `share` of the time.

    >>> schedule = Schedule(None, None, every=100, share=0.01)
    >>> schedule.due(0, 1.0), schedule.due(50, 2.0), schedule.due(100, 3.0)
    (True, False, True)
    >>> schedule.spent = 1.0
    >>> schedule.due(200, 50.0), schedule.due(200, 100.0)
    (False, True)
    """

    batch: Any
    loss: Callable[[Any, Any], Any] | None
    every: int
    share: float
    spent: float = 0.0  # seconds
    _last: int | None = None

    def due(self, step: int, seconds: float) -> bool:
        """Whether to try now; if so, it counts as done."""
        if (self._last is not None and step - self._last < self.every) or self.spent > self.share * seconds:
            return False
        self._last = step
        return True

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time this takes to what was spent."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - began
