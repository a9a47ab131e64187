"""softmax, log_softmax and logsumexp of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def hidden_to_minus_inf(x: Array, visible: Array | None) -> Array:
    """Set the logits of hidden entries to −inf, whatever they were, even NaN."""
    return x if visible is None else np.where(visible, x, -np.inf)


def maximum(x: Array) -> Array:
    """Return the largest entry of each row, with the axis kept; −inf for an empty row, NaN if the row has a NaN."""
    return np.asarray(np.max(x, axis=-1, keepdims=True, initial=-np.inf))


def distances(x: Array, temperature: Any) -> Array:
    """Compute (x − max x) / temperature.

    Subtract the maximum first: dividing by a small temperature before subtracting loses thousands of ulps on
    shifted data. An entry of −inf stays −inf even at an infinite temperature.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        m = maximum(x)
        gap = x - m
        d = np.where(gap == -np.inf, gap, gap / temperature)
        if np.any((gap == -np.inf) & (x > -np.inf)):
            # x − m may overflow float64 even if (x − m)/T does not, so halve both first.
            d = np.where((gap == -np.inf) & (x > -np.inf), 2.0 * ((0.5 * x - 0.5 * m) / temperature), d)
        return d


def softmax(x: Array, temperature: Any = 1.0, visible: Array | None = None) -> Array:
    """Compute exp(d) / Σ exp(d) with d = (x − max x) / temperature; hidden entries get exactly 0."""
    e = np.exp(distances(hidden_to_minus_inf(x, visible), temperature))
    p = e / np.sum(e, axis=-1, keepdims=True)
    return p if visible is None else np.where(visible, p, 0.0)


def log_z(d: Array) -> Array:
    """Compute log Σ exp(d) for d ≤ 0 with its maximum at 0, with the axis kept.

    The terms at the maximum are counted, not summed, so that log1p sees what the other terms add: near one-hot,
    log(1 + r) would round r away.
    """
    e = np.exp(d)
    below = d < 0.0  # False for NaN, so that NaN reaches c
    c = np.sum(np.where(below, 0.0, e), axis=-1, keepdims=True)
    r = np.sum(np.where(below, e, 0.0), axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(c) + np.log1p(r / c))


def log_softmax(x: Array, temperature: Any = 1.0, visible: Array | None = None) -> Array:
    """Compute d − log Σ exp(d) with d = (x − max x) / temperature; hidden entries get −inf."""
    d = distances(hidden_to_minus_inf(x, visible), temperature)
    y = d - log_z(d)
    return y if visible is None else np.where(visible, y, -np.inf)


def logsumexp(x: Array, temperature: Any = 1.0, visible: Array | None = None) -> Array:
    """Compute log Σ exp(x / temperature) of each row, without the axis; −inf for an empty row."""
    x = hidden_to_minus_inf(x, visible)
    m = maximum(x)
    with np.errstate(invalid="ignore", over="ignore"):
        lse = m / temperature + log_z(distances(x, temperature))
    # Rows with maximum +inf or −inf have no distances; their result is the maximum itself, unless T is NaN.
    lse = np.where(np.isinf(m), np.where(np.isnan(temperature), np.nan, m), lse)
    return np.asarray(lse[..., 0])
