"""The contract battery as a check of an answer, over the pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.lab.homework.answer_process import Foreign
from softscope.lab.homework.exercise import Problem
from softscope.lab.homework.sentences import given
from softscope.testing.battery import breaks
from softscope.testing.wording import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softscope.lab.homework.trial import Trial

# Softmax does not settle what an empty array should give; ours returns an empty array.
_NOT_ASKED = ("empty",)


def contract(function: str, *, but: tuple[str, ...] = ()) -> Callable[[Trial], Iterator[Problem]]:
    """Make a check that runs the whole contract on one of the answer's functions; `but` names properties to skip."""

    def check(trial: Trial) -> Iterator[Problem]:
        for result in breaks(_remembering(trial, function), seed=trial.seed, lang=trial.lang):
            if result.property in (*_NOT_ASKED, *but):
                continue
            sentence = given(result.sentence, show(result.input)).of(trial.lang)
            yield Problem(result.property, sentence)
            if isinstance(result.output, BaseException) or result.property == "returns":
                return  # a function that raises or returns no numbers fails the rest for the same reason

    return check


def _remembering(trial: Trial, function: str) -> Callable[[np.ndarray], Any]:
    """Cache the function's results: the battery repeats many inputs."""
    known: dict[tuple[object, ...], tuple[Any, np.ndarray]] = {}

    def f(x: np.ndarray) -> Any:
        key = (x.dtype.str, x.shape, x.tobytes(), x.flags.writeable)
        if key not in known:
            value, after = trial.value_and_input(function, x)
            known[key] = (_named(value), after)
        value, after = known[key]
        if x.flags.writeable:  # the battery's own copy, in which it looks for changes
            x[...] = after
        return np.copy(value) if isinstance(value, np.ndarray) else value

    return f


def _named(value: Any) -> Any:
    """Give a foreign object its own type's name, since the battery's sentences quote it."""
    return type(value.kind, (Foreign,), {})(value.kind, value.text) if isinstance(value, Foreign) else value
