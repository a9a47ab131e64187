"""What lesson 8 shows of the ways to turn scores into weights: their names, maps and properties."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import Text
from softscope.experiments.maps import MAPS, NAMES
from softscope.experiments.properties import FIVE, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang

EXAMPLE = (1.2, 0.9, 0.1, -1.5)
MOST = 8
SIMPLEX = ("softmax", "entmax", "sparsemax")
KEYS = (*SIMPLEX, "linear", "relu", "sigmoid", "hardmax")
_EXTRA = (Text(zh="处处有斜率", en="never flat"), Text(zh="平移不变", en="shift changes nothing"))


def read(text: str) -> tuple[list[float], list[str]]:
    """Split a text into finite numbers and the rest; separators are spaces, commas and semicolons of both languages.

    >>> read("1, −2；abc、nan 3")
    ([1.0, -2.0, 3.0], ['abc', 'nan'])
    """
    numbers, others = [], []
    for part in re.split(r"[\s,，;；、]+", text):
        try:
            number = float(part.replace("−", "-"))
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            numbers.append(number)
        elif part:
            others.append(part)
    return numbers, others


def maps(lang: Lang) -> dict[str, Callable[[Any], Any]]:
    """Return every map, keyed by its name in the language."""
    return {NAMES[key].of(lang): MAPS[key] for key in KEYS}


def simplex(lang: Lang) -> set[str]:
    """Name the maps whose weights are shares of a whole for all scores, and are not just zeros and ones."""
    return {NAMES[key].of(lang) for key in SIMPLEX}


def heads(lang: Lang) -> list[str]:
    """Return the names of the five properties and of the lesson's two further questions, in the order of `marks`."""
    return [head.of(lang) for head in (*(asked.name for asked in FIVE), *_EXTRA)]


def five(lang: Lang) -> str:
    """List the names of the five properties.

    >>> five("en")
    'stands out, in [0, 1], sums to 1, differentiable, a distribution'
    """
    return Text(zh="、", en=", ").of(lang).join(asked.name.of(lang) for asked in FIVE)


@functools.cache
def marks(lang: Lang) -> list[tuple[Any, ...]]:
    """Return, for each map, its name, whether it has each of the five properties, and the two further answers.

    >>> held = {row[0]: row[1:] for row in marks("en")}
    >>> held["softmax"]
    (True, True, True, True, True, True, True)
    >>> held["x/Σx"][1], held["sigmoid"][2], held["sparsemax"][5], held["hardmax"][5]
    (False, False, False, False)
    """
    x = np.random.default_rng(0).normal(0.0, 1.0, (400, 6))
    return [
        (name, *(mark.held for mark in report(made).values()), _answers(made, x), _unmoved(made, x))
        for name, made in maps(lang).items()
    ]


def _unmoved(made: Callable[[Any], Any], x: Any) -> bool:
    """Check that adding one number to all scores changes nothing."""
    return bool(np.allclose(made(x + 3.0), made(x)))


def _answers(made: Callable[[Any], Any], x: Any, step: float = 1e-3) -> bool:
    """Check that the largest weight moves when its score does, even when it already has all the weight."""
    top = np.eye(x.shape[-1])[x.argmax(-1)]
    before, after = (made(y)[top == 1] for y in (x, x - step * top))
    return bool(np.isfinite(before).all() and (np.abs(after - before) > 1e-9).all())
