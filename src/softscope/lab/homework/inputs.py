"""Rows of logits to test an answer on: simple ones first, then random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = npt.NDArray[np.float64]

_SIMPLE = ((0.0, 1.0), (1.0, 2.0, 3.0), (0.0, 0.0), (-1.0, 2.0), (2.0,), (-2.0, -1.0, 0.0, 3.0))
# Far below 0 and far above, close together and far apart, and with ties at the top.
_LARGE = (
    (0.0, -1000.0),
    (1000.0, 1001.0),
    (1000.0, 1001.0, 1002.0),
    (-1000.0, -1001.0),
    (1e5, 0.0, -1e5),
    (0.0, 0.0, -1000.0),
    (800.0, 799.5, 5.0, -800.0),
    (-3000.0, -3000.0, -3000.5),
)
_LONG = 2_000  # the time of a simple answer grows with its square


def rows(rng: np.random.Generator) -> Iterator[tuple[Row]]:
    """Yield moderate logits: simple ones, then random ones with two decimals, in growing lengths."""
    for numbers in _SIMPLE:
        yield (np.array(numbers),)
    for n in (2, 3, 5, 8, 16):
        yield (drawn(rng, n),)


def large(rng: np.random.Generator) -> Iterator[tuple[Row]]:
    """Yield logits whose exp overflows or underflows: simple ones, then random ones with a range of over 700."""
    for numbers in _LARGE:
        yield (np.array(numbers),)
    for n in (3, 8):
        yield (300.0 * drawn(rng, n),)
        yield (drawn(rng, n) + 1000.0,)


def hard(rng: np.random.Generator) -> Iterator[tuple[Row]]:
    """Yield large logits, some that are −inf, and a long row."""
    yield from large(rng)
    yield (np.array([1000.0, -np.inf, 1001.0]),)
    yield (drawn(rng, _LONG),)


def drawn(rng: np.random.Generator, *shape: int) -> Row:
    """Draw random numbers around 0 with two decimals."""
    return np.round(rng.normal(0.0, 2.0, shape), 2)
