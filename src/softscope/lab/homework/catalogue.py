"""The exercises, in order."""

from __future__ import annotations

import importlib

from softscope._natural_number import natural_number
from softscope.lab.homework.exercise import Exercise
from softscope.lab.homework.quiz import Quiz

_MODULES = (  # in the order in which the lessons come to them
    "softmax_by_hand",
    "temperature",
    "jacobian_product",
    "dimension",
    "online_softmax",
    "dividing_by_the_sum",
    "log_softmax",
    "sparsemax",
)
EXERCISES: tuple[Exercise | Quiz, ...] = tuple(
    importlib.import_module(f"softscope.lab.homework.exercises.{name}").EXERCISE for name in _MODULES
)
IDS = tuple(exercise.id for exercise in EXERCISES)


def find(name: str) -> Exercise | Quiz:
    """Find an exercise by id, or by number from 1.

    >>> find("4").id, find("dimension").id
    ('dimension', 'dimension')
    """
    text = str(name).strip().lower()
    place = natural_number(text)
    if place is not None and 1 <= place <= len(EXERCISES):
        return EXERCISES[place - 1]
    for exercise in EXERCISES:
        if exercise.id == text:
            return exercise
    raise KeyError(f"there is no exercise {name!r}; there are {', '.join(IDS)}")


def number(exercise: Exercise | Quiz) -> int:
    """Return its position in the order, from 1."""
    return IDS.index(exercise.id) + 1
