"""The contract battery as a check of an answer, over the pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.lab.homework.answer_process import Foreign
from softscope.lab.homework.exactness import EXACT, as_numbers
from softscope.lab.homework.exercise import Problem
from softscope.lab.homework.sentences import given
from softscope.testing.battery import breaks
from softscope.testing.probe import LARGEST
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softscope.lab.homework.trial import Trial

# Softmax does not settle what an empty array should give; ours returns an empty array. Every call gets its own copy of
# the input, so an answer may work in it. The tasks do not speak of whole numbers.
_NOT_ASKED = ("empty", "input_unchanged", "integers")
_EPS = EXACT / 64.0  # the battery allows two weights to differ by 64 of these


def contract(
    function: str, *, but: tuple[str, ...] = (), largest: float = LARGEST
) -> Callable[[Trial], Iterator[Problem]]:
    """Make a check that runs the whole contract on one of the answer's functions.

    `but` names properties to skip, `largest` the size of the largest logits.
    """

    def check(trial: Trial) -> Iterator[Problem]:
        f = _remembering(trial, function)
        asked: dict[str, Any] = {"but": (*_NOT_ASKED, *but), "eps": _EPS, "largest": largest}
        for result in breaks(f, seed=trial.seed, lang=trial.lang, **asked):
            sentence = given(result.sentence, show(result.input)).of(trial.lang)
            yield Problem(result.property, sentence)
            if isinstance(result.output, BaseException) or result.property == "returns":
                return  # a function that raises or returns no numbers fails the rest for the same reason

    return check


def _remembering(trial: Trial, function: str) -> Callable[[np.ndarray], Any]:
    """Cache the function's results: the battery repeats many inputs."""
    known: dict[tuple[object, ...], Any] = {}

    def f(x: np.ndarray) -> Any:
        key = (x.dtype.str, x.shape, x.tobytes())
        if key not in known:
            value = trial.value(function, np.copy(x))
            known[key] = _named(value if (numbers := as_numbers(value)) is None else numbers)
        value = known[key]
        return np.copy(value) if isinstance(value, np.ndarray) else value

    return f


def _named(value: Any) -> Any:
    """Give a foreign object its own type's name, since the battery's sentences quote it."""
    return type(value.kind, (Foreign,), {})(value.kind, value.text) if isinstance(value, Foreign) else value
