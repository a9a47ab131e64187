"""Rows of logits to test an answer on: simple ones first, then random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = npt.NDArray[np.float64]

_SIMPLE = ((0.0, 1.0), (1.0, 2.0, 3.0), (0.0, 0.0), (-1.0, 2.0), (2.0,), (-2.0, -1.0, 0.0, 3.0))
_LARGE = ((0.0, -1000.0), (1000.0, 1001.0), (-1000.0, -1001.0), (1e5, 0.0, -1e5))


def rows(rng: np.random.Generator) -> Iterator[tuple[Row]]:
    """Yield moderate logits: simple ones, then random ones with two decimals, in growing lengths."""
    for numbers in _SIMPLE:
        yield (np.array(numbers),)
    for n in (2, 3, 5, 8, 16):
        yield (drawn(rng, n),)


def large(_: np.random.Generator) -> Iterator[tuple[Row]]:
    """Yield logits whose exp overflows or underflows."""
    for numbers in _LARGE:
        yield (np.array(numbers),)


def drawn(rng: np.random.Generator, *shape: int) -> Row:
    """Draw random numbers around 0 with two decimals."""
    return np.round(rng.normal(0.0, 2.0, shape), 2)
