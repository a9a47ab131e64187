"""α-entmax for α > 2, where a weight leaves 0 with infinite slope: p = [(α−1)·x − τ]₊^(1/(α−1)), an exponent below 1.

Next to τ the difference (α−1)·x − τ cancels, and its root turns one lost digit into many. So nothing is measured from
τ, but from y, the lowest logit that has weight, and its weight q:

    p^β = q^β + b^β,    b = (β·(x − y)/T)^(1/β),    β = α − 1 > 1

Both y and q are well determined. y is the lowest logit at which Σ b < 1, so a comparison finds it. And p is the β-norm
of (q, b): convex in q with a slope between 0 and 1, so Newton's method comes down to the root of Σ p = 1 from above.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._backends.reference.softmax import Array

# Each step at least quarters (Σp − 1)·slope, and the slope of a row of n stays within 1 and n (Radzik's bound for
# Newton's method on convex functions): 60 steps would do for 2^60 entries.
_STEPS = 60


def log_distances(x: Array, y: Array, beta: Any, temperature: Any) -> Array:
    """Compute log b = log(β·(x − y)/T)/β; −inf where x ≤ y. Only logarithms hold every α and T."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = x - y
        log_gap = np.where(np.isinf(gap) & np.isfinite(y), np.log(0.5 * x - 0.5 * y) + np.log(2.0), np.log(gap))
        log_b = (log_gap + (np.log(beta) - np.log(temperature))) / beta
        return np.where(x > y, log_b, np.where(x <= y, -np.inf, np.nan))


def log_weights(log_b: Array, log_q: Array, beta: Any) -> Array:
    """Compute log p = log(q^β + b^β)/β; for x = y, where b = 0, it is log q."""
    with np.errstate(invalid="ignore", over="ignore"):
        higher = np.maximum(log_b, log_q)
        lower = np.where(log_b == -np.inf, -np.inf, beta * -np.abs(log_b - log_q))
        return np.asarray(higher + np.log1p(np.exp(lower)) / beta)


def lowest(x: Array, beta: Any, temperature: Any) -> tuple[Array, Array]:
    """Find y and log q of each row, with the axis kept; NaN where the row has NaN or no finite maximum."""
    y = _lowest_logit(x, beta, temperature)
    log_b = log_distances(x, y, beta, temperature)
    inside, tied = x >= y, x == y
    b = np.where(inside, np.exp(log_b), 0.0)
    size, ties = (np.maximum(np.sum(which, axis=-1, keepdims=True), 1) for which in (inside, tied))
    # Σ p is at least q·size, and at least Σ b + q·ties: both bound the root from above.
    q = np.minimum(1.0 / size, (1.0 - np.sum(b, axis=-1, keepdims=True)) / ties)
    done = np.isnan(q)
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            log_q = np.log(q)
            log_p = log_weights(log_b, log_q, beta)
            slope = np.where(inside, np.exp((beta - 1.0) * np.where(log_p > log_q, log_q - log_p, 0.0)), 0.0)
            excess = np.sum(np.where(inside, np.exp(log_p), 0.0), axis=-1, keepdims=True) - 1.0
            new = np.maximum(q - excess / np.sum(slope, axis=-1, keepdims=True), 0.0)
        near = ~(new < q * (1.0 - 1e-15))
        # A converged row stays fixed: its result must not depend on how many steps its neighbours take.
        q = np.where(done, q, new)
        done |= near
        if np.all(done):
            break
    with np.errstate(divide="ignore", invalid="ignore"):
        return y, np.where(np.isnan(temperature), np.nan, np.log(q))


def _lowest_logit(x: Array, beta: Any, temperature: Any) -> Array:
    """Find the lowest logit that has weight: the lowest y with Σ b(y) < 1, by halving the sorted row."""
    rows = (*x.shape[:-1], 1)
    if x.shape[-1] == 0:
        return np.full(rows, np.nan)
    ordered = -np.sort(-x, axis=-1)
    first, last = np.zeros(rows, dtype=np.int64), np.full(rows, x.shape[-1] - 1)  # y is somewhere from first to last
    while np.any(first < last):
        middle = (first + last + 1) // 2
        y = np.take_along_axis(ordered, middle, axis=-1)
        b = np.exp(log_distances(ordered, y, beta, temperature))
        below_one = (np.sum(b, axis=-1, keepdims=True) < 1.0) & (y > -np.inf)
        first, last = np.where(below_one, middle, first), np.where(below_one, last, middle - 1)
    y = np.take_along_axis(ordered, first, axis=-1)
    broken = np.isnan(x).any(axis=-1, keepdims=True) | ~np.isfinite(y)
    return np.where(broken, np.nan, y)


def entmax(x: Array, beta: Any, temperature: Any) -> Array:
    """Compute the weights, up to the rounding of their sum."""
    y, log_q = lowest(x, beta, temperature)
    p = np.exp(log_weights(log_distances(x, y, beta, temperature), log_q, beta))
    return np.where(x < y, 0.0, p)
