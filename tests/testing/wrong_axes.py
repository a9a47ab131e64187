"""Maps that are right for one row, and wrong with `axis` or `where`."""

from __future__ import annotations

import numpy as np

from .right_maps import Row, softmax, sparsemax
from .wrong import WrongMaps

WRONG = WrongMaps()
wrong = WRONG.breaking


@wrong("axis", axis=True)
def softmax_over_everything(x: Row, axis: int = -1) -> Row:  # noqa: ARG001
    return softmax(x.ravel()).reshape(x.shape)


@wrong("axis", axis=True)
def softmax_over_the_last_axis(x: Row, axis: int = -1) -> Row:  # noqa: ARG001
    return softmax(x)


@wrong("axis", axis=True)
def softmax_that_ignores_the_sign_of_axis(x: Row, axis: int = -1) -> Row:
    return softmax(x, axis=abs(axis) if x.ndim > 1 else -1)


@wrong("axis", axis=True)
def softmax_with_one_maximum_for_all_rows(x: Row, axis: int = -1) -> Row:
    e = np.exp(x - x.max()) if x.size else np.zeros(x.shape)
    return e / e.sum(axis=axis, keepdims=True)


@wrong("axis", axis=True)
def softmax_that_swaps_its_axes(x: Row, axis: int = -1) -> Row:
    return np.moveaxis(softmax(x, axis=axis), axis, -1)


@wrong("where", where=True)
def softmax_masked_afterwards(x: Row, where: Row | None = None) -> Row:
    return softmax(x) * (True if where is None else where)


@wrong("where", where=True)
def softmax_masked_with_a_big_negative_number(x: Row, where: Row | None = None) -> Row:
    return softmax(x if where is None else np.where(where, x, -1e9))


@wrong("where", where=True)
def softmax_masked_with_a_small_negative_number(x: Row, where: Row | None = None) -> Row:
    return softmax(x if where is None else np.where(where, x, -20.0))


@wrong("where", axis=True, where=True)
def softmax_that_transposes_a_mask(x: Row, axis: int = -1, where: Row | None = None) -> Row:
    if where is not None and where.ndim == 2:
        where = ~where
    return softmax(x, axis=axis, where=where)


@wrong("where", where=True)
def sparsemax_that_takes_no_mask_to_broadcast(x: Row, where: Row | None = None) -> Row:
    if where is not None and where.shape != x.shape:
        raise ValueError("where must have the shape of x")
    return sparsemax(x, where=where)
