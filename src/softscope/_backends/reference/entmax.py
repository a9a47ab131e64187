"""sparsemax and α-entmax of rows: p = [(α−1)·x − τ]₊^(1/(α−1)), with τ such that p sums to 1.

Here is the way for α ≤ 2; `steep_entmax` has the one for α > 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._backends.reference import steep_entmax
from softscope._backends.reference.softmax import Array, distances, hidden_to_minus_inf, maximum

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS = 200  # at worst each step halves the bracket; 200 is far more than float64 can use


def log_weights(d: Array, beta: Any, top: Array) -> Array:
    """Compute log p for d = (x − max x)/T, β = α − 1 and `top` = log of the largest weight.

    From p^β = p_max^β + β·d:   log p = top + log1p(β·d·e^(−β·top)) / β,   and top + d as β → 0.
    In this form α = 1 is the limit, not a special case; the textbook form divides a cancelled difference by β.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(d == -np.inf, -np.inf, d * np.exp(-beta * top))
        inside = np.where(z == -np.inf, -1.0, np.maximum(beta * z, -1.0))
        return np.asarray(top + np.where(beta == 0.0, z, np.log1p(inside) / np.where(beta == 0.0, 1.0, beta)))


def solve_top(d: Array, beta: Any) -> Array:
    """Find the log of the largest weight: the root of log Σ p(top) = 0, by Newton steps inside a bracket.

    Σ p grows with `top`; it is ≤ 1 at −log n and ≥ 1 at 0. The logarithm makes the equation a straight line
    at α = 1. Its slope Σ s·p_max^β / Σ p, with s = p^(1−β), is never below 1, so the root is well determined.
    """
    n = np.maximum(np.sum(d != -np.inf, axis=-1, keepdims=True), 1)
    low, high = -np.log(n.astype(np.float64)), np.zeros(n.shape)
    top = low.copy()
    done = np.zeros(n.shape, dtype=bool)
    for _ in range(_STEPS):
        log_p = log_weights(d, beta, top)
        p = np.exp(log_p)
        s = np.where(p > 0.0, np.exp((1.0 - beta) * np.where(p > 0.0, log_p, 0.0)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.sum(p, axis=-1, keepdims=True)
            excess = np.log(total)
            step = excess * total / (np.sum(s, axis=-1, keepdims=True) * np.exp(beta * top))
        low, high = np.where(excess <= 0.0, top, low), np.where(excess >= 0.0, top, high)
        new = top - step
        # Stay strictly inside: Newton could swing between the bracket's edges for ever.
        small = np.abs(step) <= 1e-15
        new = np.where((new > low) & (new < high) | small, new, 0.5 * (low + high))
        near = ~(np.abs(new - top) > 4e-16 * np.maximum(1.0, np.abs(top)))  # 2 ulp; NaN counts as near
        # A converged row stays fixed: its result must not depend on how many steps its neighbours take.
        top = np.where(done, top, np.where(np.isnan(excess), np.nan, new))
        done |= near
        if np.all(done):
            break
    return top


def entmax(x: Array, alpha: Any, temperature: Any = 1.0, visible: Array | None = None) -> Array:
    """Compute the weights; hidden entries get exactly 0. α = 1 is softmax, α = 2 sparsemax."""
    x = hidden_to_minus_inf(x, visible)
    beta = np.asarray(alpha, dtype=np.float64) - 1.0
    p = _by_alpha(
        beta, lambda b: _gentle(distances(x, temperature), b), lambda b: steep_entmax.entmax(x, b, temperature)
    )
    p = p / np.sum(p, axis=-1, keepdims=True)
    return p if visible is None else np.where(visible, p, 0.0)


def threshold(x: Array, alpha: Any) -> Array:
    """Compute τ of each row, without the axis: p = [(α−1)·x − τ]₊^(1/(α−1)), so τ = (α−1)·x − p^(α−1) where p > 0."""

    def at(logit: Array, log_p: Array, beta: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(beta * logit - np.exp(beta * log_p))

    def steep(beta: Array) -> Array:
        return at(*steep_entmax.lowest(x, beta, 1.0), beta)

    def gentle(beta: Array) -> Array:
        return at(maximum(x), solve_top(distances(x, 1.0), beta), beta)

    return np.asarray(_by_alpha(np.asarray(alpha, dtype=np.float64) - 1.0, gentle, steep)[..., 0])


def _gentle(d: Array, beta: Any) -> Array:
    return np.exp(log_weights(d, beta, solve_top(d, beta)))


def _by_alpha(beta: Array, gentle: Callable[[Array], Array], steep: Callable[[Array], Array]) -> Array:
    """Let one function compute the rows with α ≤ 2, and the other those with α > 2."""
    is_steep = beta > 1.0
    if not is_steep.any():
        return gentle(beta)
    if is_steep.all():
        return steep(beta)
    return np.where(is_steep, steep(np.where(is_steep, beta, 2.0)), gentle(np.where(is_steep, 1.0, beta)))
