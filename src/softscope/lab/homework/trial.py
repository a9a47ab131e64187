"""One attempt under test: call the answer, and reject results that are not numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from softscope._text import Lang, Text
from softscope.lab.homework.answer_process import Answer
from softscope.lab.homework.exactness import as_numbers, off, tolerance
from softscope.lab.homework.sandbox.messages import described
from softscope.testing.wording import show

Numbers = npt.NDArray[np.float64]


class UnfitError(Exception):
    """A function returned something we cannot judge further; `came` says what."""

    def __init__(self, came: Text) -> None:
        super().__init__(came.en)
        self.came = came


class Trial:
    """A running answer, the seed of the random inputs, and the language of the feedback."""

    def __init__(self, answer: Answer, seed: int, lang: Lang) -> None:
        self.answer, self.seed, self.lang = answer, seed, lang

    def rng(self) -> np.random.Generator:
        """Return this attempt's random generator, from its start."""
        return np.random.default_rng(self.seed)

    def value(self, function: str, *arguments: Any) -> Any:
        """Return the function's result, whatever it is."""
        return self.answer.call(function, *arguments)

    def elsewhere(self, function: str, *arguments: Any) -> Any:
        """Return the function's result in another process, which has seen no call before."""
        return self.answer.twin().call(function, *arguments)

    def array(self, function: str, *arguments: Any, shape: tuple[int, ...]) -> Numbers:
        """Return the function's result: real numbers of that shape, in an array or in lists."""
        return self.array_and_tolerance(function, *arguments, shape=shape)[0]

    def off(self, want: Any, function: str, *arguments: Any) -> Text | None:
        """Compare the function's result with the right numbers; None if it is as exact as its dtype allows."""
        want = np.asarray(want, dtype=np.float64)
        return off(*self.array_and_tolerance(function, *arguments, shape=want.shape), want)

    def array_and_tolerance(self, function: str, *arguments: Any, shape: tuple[int, ...]) -> tuple[Numbers, float]:
        """Return the function's result, and how exact it must be."""
        value = self.value(function, *arguments)
        raw = as_numbers(value)
        if raw is None:
            raise UnfitError(
                Text(
                    zh=f"返回的是 {told(value)}，不是由实数组成的数组或列表",
                    en=f"it returned {told(value)}, not an array or a list of real numbers",
                )
            )
        if raw.shape != shape:
            raise UnfitError(
                Text(
                    zh=f"返回的形状是 {raw.shape}，应当是 {shape}",
                    en=f"it returned shape {raw.shape} instead of {shape}",
                )
            )
        return raw.astype(np.float64), tolerance(raw)

    def number(self, function: str, *arguments: Any) -> float:
        """Return the function's result, which must be one real number."""
        return as_number(self.value(function, *arguments))


def as_number(raw: Any) -> float:
    """Convert to one real number; an array of shape () counts."""
    if isinstance(raw, np.ndarray) and raw.shape == ():
        raw = raw.item()
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise UnfitError(Text(zh=f"得到的是 {told(raw)}，不是一个数", en=f"got {told(raw)}, not a number"))
    return float(raw)


def told(raw: Any) -> str:
    """Format one of the answer's values as short text.

    >>> told(None), told([0.5]), told(0.1 + 0.2)
    ('None', '[0.5]', '0.3')
    """
    return show(raw) if isinstance(raw, np.ndarray | float | int) else described(raw)
