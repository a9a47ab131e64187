"""A property tested on inputs, simplest first; we shrink a failing input as far as we can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from softscope._text import Lang, Text
from softscope.lab.homework.answer_process import RaisedError
from softscope.lab.homework.exercise import Problem
from softscope.lab.homework.sentences import came_with, raised
from softscope.lab.homework.trial import Trial, UnfitError
from softscope.testing.wording import show

Arguments = tuple[Any, ...]
_ATTEMPTS = 60  # calls spent on shrinking an input
_LONGEST = 64  # largest array worth shrinking, in entries


@dataclass(frozen=True)
class Rule:
    """One property.

    Attributes:
        name: a stable name, for tests and pages.
        claim: the property as half a sentence, "The weights must sum to 1".
        names: the names of the inputs.
        inputs: arguments to try, simple ones first, then random ones from the generator.
        broken: given the trial and the arguments, returns what came instead; None if the property holds.
    """

    name: str
    claim: Text
    names: tuple[str, ...]
    inputs: Callable[[np.random.Generator], Iterable[Arguments]]
    broken: Callable[..., Text | None]

    def __call__(self, trial: Trial) -> Iterator[Problem]:
        """Find the first input that breaks the property, and shrink it."""
        for arguments in self.inputs(trial.rng()):
            came = self._came(trial, arguments)
            if came is not None:
                arguments, came = self._shorter(trial, arguments, came)
                yield Problem(self.name, came_with(self.claim, came, self._shown(arguments, trial.lang)).of(trial.lang))
                return

    def _came(self, trial: Trial, arguments: Arguments) -> Text | None:
        copies = [np.copy(part) if isinstance(part, np.ndarray) else part for part in arguments]
        try:
            return self.broken(trial, *copies)
        except UnfitError as error:
            return error.came
        except RaisedError as error:
            return raised(error)

    def _shorter(self, trial: Trial, arguments: Arguments, came: Text) -> tuple[Arguments, Text]:
        left = _ATTEMPTS
        found = True
        while found and left > 0:
            found = False
            for candidate in _smaller(arguments):
                left -= 1
                still = self._came(trial, candidate)
                if still is not None:
                    arguments, came, found = candidate, still, True
                    break
                if left <= 0:
                    break
        return arguments, came

    def _shown(self, arguments: Arguments, lang: Lang) -> str:
        return ", ".join(f"{name} = {_text(part, lang)}" for name, part in zip(self.names, arguments, strict=True))


def _text(part: Any, lang: Lang) -> str:
    if isinstance(part, np.ndarray) and part.size > 2 * _LONGEST and part.ndim > 1:
        shape = " × ".join(map(str, part.shape))
        return Text(zh=f"{shape} 个数", en=f"{shape} numbers").of(lang)
    return show(part)


def _smaller(arguments: Arguments) -> Iterator[Arguments]:
    """Yield the input without one entry, dropped from all rows of that length at once; then with rounder numbers."""
    rows = [part for part in arguments if isinstance(part, np.ndarray) and part.ndim == 1]
    if len(rows) != sum(isinstance(part, np.ndarray) for part in arguments) or not rows:
        return
    n = rows[0].size
    if n <= _LONGEST and n > 1 and all(row.size == n for row in rows):
        for i in range(n):
            yield tuple(np.delete(part, i) if isinstance(part, np.ndarray) else part for part in arguments)
    for digits in (0, 1):
        rounded = tuple(np.round(part, digits) if isinstance(part, np.ndarray) else part for part in arguments)
        if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(rounded, arguments, strict=True)):
            yield rounded
