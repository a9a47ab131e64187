"""Draw an index from each row of weights."""

from __future__ import annotations

import numpy as np

from softscope._backends.reference.softmax import Array


def keep(p: Array, top_k: int | None, top_p: float | None, min_p: float | None) -> Array:
    """Set the weights that the three filters drop to 0, renormalising after each filter.

    Args:
        top_k: Keep the k largest weights, and the first ones among ties.
        top_p: Keep the smallest set of largest weights whose sum reaches top_p.
        min_p: Keep the weights of at least min_p times the largest weight.
    """
    order = np.argsort(-p, axis=-1, kind="stable")
    sorted_p = np.take_along_axis(p, order, axis=-1)
    if top_k is not None:
        sorted_p = np.where(np.arange(p.shape[-1]) < top_k, sorted_p, 0.0)
    if top_p is not None:
        sorted_p = sorted_p / np.sum(sorted_p, axis=-1, keepdims=True)
        before = np.cumsum(sorted_p, axis=-1) - sorted_p
        sorted_p = np.where(before < top_p, sorted_p, 0.0)
    if min_p is not None:
        sorted_p = np.where(sorted_p >= min_p * sorted_p[..., :1], sorted_p, 0.0)
    kept = np.empty_like(p)
    np.put_along_axis(kept, order, sorted_p, axis=-1)
    return kept


def draw(p: Array, uniform: Array) -> Array:
    """Return the index at which the running sum of p first exceeds uniform·Σp; weights of 0 are never drawn."""
    running = np.cumsum(p, axis=-1)
    index = np.sum(running <= uniform[..., None] * running[..., -1:], axis=-1)
    return np.asarray(index, dtype=np.int64)
