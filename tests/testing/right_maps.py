"""Softmax, sparsemax and entmax-1.5 in plain float64, independent of the package under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Row = np.ndarray[Any, Any]


def softmax_row(x: Row) -> Row:
    e = np.exp(x - x.max())
    return e / e.sum()


def sparsemax_row(x: Row) -> Row:
    """Martins & Astudillo 2016, by sorting."""
    z = x - x.max()
    if np.isnan(z).any():
        return np.full_like(z, np.nan)
    ordered = np.sort(z)[::-1]
    sums = np.cumsum(ordered)
    size = np.flatnonzero(1.0 + np.arange(1, z.size + 1) * ordered > sums)[-1] + 1
    return np.maximum(z - (sums[size - 1] - 1.0) / size, 0.0)


def entmax_row(x: Row, alpha: float = 1.5) -> Row:
    """[(α−1)x − τ]₊^(1/(α−1)), τ by bisection."""
    z = (alpha - 1.0) * (x - x.max())
    low, high = -1.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if (np.maximum(z - middle, 0.0) ** (1.0 / (alpha - 1.0))).sum() >= 1.0:
            low = middle
        else:
            high = middle
    p = np.maximum(z - low, 0.0) ** (1.0 / (alpha - 1.0))
    return p / p.sum()


def with_options(row_map: Callable[[Row], Row]) -> Callable[..., Row]:
    """Turn a map of one row into a map of arrays with `axis` and `where`, row by row; the dtype is preserved."""

    def f(x: Row, axis: int = -1, where: Row | None = None) -> Row:
        x = np.asarray(x)
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        if where is None and x.ndim == 1 and x.size:
            return row_map(x.astype(np.float64)).astype(dtype)
        rows = np.moveaxis(x, axis, -1).astype(np.float64)
        seen = np.moveaxis(np.broadcast_to(True if where is None else where, x.shape), axis, -1)
        weights = np.zeros(rows.shape)
        for i in np.ndindex(rows.shape[:-1]):
            if seen[i].any():
                weights[i][seen[i]] = row_map(rows[i][seen[i]])
        return np.moveaxis(weights, -1, axis).astype(dtype)

    return f


softmax = with_options(softmax_row)
sparsemax = with_options(sparsemax_row)
entmax15 = with_options(entmax_row)

RIGHT = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15}
