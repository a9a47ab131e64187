"""Attention with all logits materialised; the fused kernels must agree with it.

Shapes: q (…, heads, rows, d), k (…, heads, m, d), v (…, heads, m, dv); the heads already match.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._backends.reference.entmax import entmax, threshold
from softscope._backends.reference.jacobian import diagonal
from softscope._backends.reference.softmax import Array, softmax


def dot_scores(q: Array, k: Array, scale: Any) -> Array:
    """Compute scale·q·k for every query and key."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(scale * (q @ np.swapaxes(k, -1, -2)))


def additive_scores(q: Array, k: Array, w_q: Array, w_k: Array, v_a: Array) -> Array:
    """Compute v_a·tanh(q·w_q + k·w_k), one hidden unit at a time, to avoid an (n, m, hidden) array."""
    left, right = q @ w_q, k @ w_k
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*lead, q.shape[-2], k.shape[-2]))
    for h in range(v_a.shape[0]):
        total += v_a[h] * np.tanh(left[..., :, None, h] + right[..., None, :, h])
    return total


def capped(scores: Array, softcap: float | None) -> Array:
    """c·tanh(s/c)."""
    return scores if softcap is None else softcap * np.tanh(scores / softcap)


def cap_slope(scores: Array, softcap: float | None) -> Array:
    """Compute the derivative of the soft cap, 1 − tanh²(s/c), as 1/cosh² so that nothing cancels."""
    if softcap is None:
        return np.ones_like(scores)
    with np.errstate(over="ignore"):
        return np.asarray(np.cosh(scores / softcap) ** -2.0)


def with_sink(x: Array, sink: Any) -> Array:
    """Append the sink's column; `sink` is a number or (heads, 1)."""
    column = np.broadcast_to(np.asarray(sink)[..., None], (*x.shape[:-1], 1))
    return np.concatenate([x, column.astype(x.dtype)], axis=-1)


def weights(logits: Array, visible: Array, sink: Any, alpha: Any) -> Array:
    """Compute the weights over the keys; with a sink, they sum to less than 1. Rows that see no key get zeros."""
    if not np.all(np.equal(alpha, 1.0)):
        return entmax(logits, alpha, 1.0, visible)
    if sink is None:
        return softmax(logits, 1.0, visible)
    return softmax(with_sink(logits, sink), 1.0, with_sink(visible, True))[..., :-1]


def weighted_sum(p: Array, visible: Array, v: Array) -> Array:
    """Compute p·v so that hidden keys cannot affect a query, not even by a NaN in v (0·NaN is NaN)."""
    broken = ~np.isfinite(v)
    output = p @ np.where(broken, 0.0, v)
    if broken.any():
        seen = visible.astype(np.float64) @ broken.astype(np.float64) > 0.0
        output = np.where(seen, np.nan, output)
    return np.asarray(output)


def support_readings(logits: Array, visible: Array, alpha: Any) -> dict[str, Array]:
    """Return τ, size, entropy, collision, peak and trace of sparse weights; NaN (size 0) for rows that see no key."""
    p = entmax(logits, alpha, 1.0, visible)
    some = visible.any(axis=-1)
    positive = np.where(p > 0.0, p, 1.0)
    readings = {
        "tau": threshold(np.where(visible, logits, -np.inf), alpha),
        "entropy": -np.sum(np.where(p > 0.0, positive * np.log(positive), p), axis=-1),
        "collision": np.sum(p * p, axis=-1),
        "peak": np.max(p, axis=-1, initial=0.0),
        "jacobian_trace": np.sum(diagonal(p, alpha), axis=-1),
    }
    readings = {name: np.where(some, value, np.nan) for name, value in readings.items()}
    readings["size"] = np.sum(p > 0.0, axis=-1)
    return readings
