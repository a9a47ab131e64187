"""Ways to turn scores into weights, and the properties that lesson 8 measures on each."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope as ss
from softscope._text import Text, same

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Lang

EXAMPLE = (1.2, 0.9, 0.1, -1.5)
MOST = 8
SIMPLEX = ("softmax", "entmax", "sparsemax")
_HEADS = (
    Text(zh="突出大的", en="favours the large"),
    Text(zh="都不小于零", en="none negative"),
    Text(zh="和为一", en="sums to one"),
    Text(zh="没有折点和跳跃", en="no kink, no jump"),
    Text(zh="处处有斜率", en="never flat"),
    Text(zh="平移不变", en="shift changes nothing"),
)


def _linear(x: Any) -> Any:
    with np.errstate(all="ignore"):
        total = x.sum(-1, keepdims=True)
        return np.where(total == 0.0, np.nan, x / total)  # ±inf is no better an answer, and would warn in every sum


def _relu(x: Any) -> Any:
    return _linear(np.maximum(x, 0.0))


def _hard(x: Any) -> Any:
    return np.eye(x.shape[-1])[x.argmax(-1)]


_MAPS: dict[str, tuple[Text, Callable[[Any], Any]]] = {
    "softmax": (same("softmax"), ss.softmax),
    "entmax": (same("entmax 1.5"), lambda x: ss.entmax(x, 1.5)),
    "sparsemax": (same("sparsemax"), ss.sparsemax),
    "linear": (Text(zh="线性：x/Σx", en="linear: x/Σx"), _linear),
    "relu": (Text(zh="ReLU 再归一", en="ReLU, normalised"), _relu),
    "sigmoid": (same("sigmoid"), lambda x: np.exp(-np.logaddexp(0.0, -x))),
    "hard": (Text(zh="硬最大", en="hard maximum"), _hard),
}


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
    return {name.of(lang): made for name, made in _MAPS.values()}


def simplex(lang: Lang) -> set[str]:
    """Name the maps whose weights are shares of a whole for all scores, and are not just zeros and ones."""
    return {_MAPS[key][0].of(lang) for key in SIMPLEX}


def heads(lang: Lang) -> list[str]:
    """Return the properties' names, in the order of `properties`."""
    return [head.of(lang) for head in _HEADS]


def properties(lang: Lang, rows: int = 400) -> list[tuple[Any, ...]]:
    """Return, for each map, its name and whether each property held on all random rows.

    >>> held = {row[0]: row[1:] for row in properties("en", 50)}
    >>> held["softmax"]
    (True, True, True, True, True, True)
    >>> held["linear: x/Σx"][1], held["sigmoid"][2], held["sparsemax"][4], held["hard maximum"][4]
    (False, False, False, False)
    """
    x = np.random.default_rng(0).normal(0.0, 1.0, (rows, 6))
    return [(name.of(lang), *_checks(made, x)) for name, made in _MAPS.values()]


def _checks(made: Callable[[Any], Any], x: Any) -> tuple[bool, ...]:
    w = made(x)
    known = bool(np.isfinite(w).all())
    order = np.argsort(x, -1)
    favours = known and bool((np.diff(np.take_along_axis(w, order, -1), axis=-1) >= -1e-12).all())
    positive = known and bool((w >= 0).all())
    whole = known and bool(np.allclose(w.sum(-1), 1.0))
    moved = known and bool(np.allclose(made(x + 3.0), w))
    return favours, positive, whole, _smooth(made), _answers(made, x), moved


def _smooth(made: Callable[[Any], Any], step: float = 1e-4) -> bool:
    """Check that the first weight's slope changes little between steps along a line through the scores."""
    line = np.arange(-3.0, 3.0, step)
    x = np.stack([line, np.full_like(line, 0.3), np.full_like(line, -0.4)], -1)
    first = made(x)[:, 0]
    slopes = np.diff(first) / step
    return bool(np.isfinite(first).all() and np.abs(np.diff(slopes)).max() < 0.05)


def _answers(made: Callable[[Any], Any], x: Any, step: float = 1e-3) -> bool:
    """Check that the largest weight moves when its score does, even when it already has all the weight."""
    top = np.eye(x.shape[-1])[x.argmax(-1)]
    before, after = (made(y)[top == 1] for y in (x, x - step * top))
    return bool(np.isfinite(before).all() and (np.abs(after - before) > 1e-9).all())
