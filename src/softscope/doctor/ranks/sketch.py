"""Quantiles of rows that no process has together: DDSketch (Masson et al. 2019), counted for all heads at once.

The bins are those of the package `ddsketch`: each spans a ratio of 1.22, so that a quantile is within 10% of the value
of a row. Counts of all ranks add up. Values below 1e-7 share the lowest bin.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from softscope.doctor.read.snapshot import Array

READING: Final = "transmission"  # the only one whose quantiles are judged
FIELD: Final = f"{READING}:bins"
ACCURACY: Final = 0.1
LOWEST, HIGHEST = 1e-7, 2.0
BINS: Final = 85


@functools.cache
def _mapping() -> tuple[int, tuple[float, ...], tuple[float, ...]]:
    """The lowest key, and for each bin its upper border and the value that stands for it."""
    try:
        from ddsketch.mapping import LogarithmicMapping
    except ModuleNotFoundError as error:
        raise ImportError("group needs quantiles that merge: pip install 'softscope[doctor]'") from error
    mapping = LogarithmicMapping(ACCURACY)
    first = mapping.key(LOWEST)
    keys = range(first, mapping.key(HIGHEST) + 1)
    assert len(keys) == BINS
    return first, tuple(mapping.gamma**key for key in keys), tuple(mapping.value(key) for key in keys)


def available() -> None:
    """Raise ImportError if the package is missing."""
    _mapping()


def counts(values: Tensor, of: Tensor) -> Tensor:
    """How many of the rows where `of` is True fall into each bin: (heads, rows) → (heads, BINS)."""
    borders = torch.tensor(_mapping()[1][:-1], dtype=torch.float64, device=values.device).to(values.dtype)
    place = torch.bucketize(values.nan_to_num(nan=0.0), borders)
    return torch.zeros(values.shape[0], BINS, device=values.device).scatter_add_(1, place, of.to(torch.float32))


def quantile(bins: Array, level: float) -> Array:
    """The quantile of each row of counts, (heads, BINS) → (heads,); NaN where nothing was counted.

    Interpolates between neighbouring rows, as `numpy.quantile` does and as one process does.
    """
    values, up_to = np.array(_mapping()[2]), np.cumsum(bins, axis=1)
    rank = level * (up_to[:, -1:] - 1.0)

    def at(rank: Array) -> Array:
        return values[np.minimum((up_to <= rank).sum(axis=1), BINS - 1)]

    low, high, between = at(np.floor(rank)), at(np.ceil(rank)), (rank - np.floor(rank))[:, 0]
    return np.where(up_to[:, -1] > 0, low + between * (high - low), np.nan)
