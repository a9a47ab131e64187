"""Find the temperature that gives a target entropy or peak, or that calibrates probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope._backends.reference.partition import State, state
from softscope._backends.reference.softmax import Array, log_softmax, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS = 200


def entropy_of(s: State) -> Array:
    """log z − u/z."""
    z = s.c + s.r
    return np.asarray(np.log(s.c) + np.log1p(s.r / s.c) - s.u / z)


def log_peak_of(s: State) -> Array:
    """−log z."""
    return np.asarray(-(np.log(s.c) + np.log1p(s.r / s.c)))


def temperature_for(x: Array, reading: Callable[[State], Array], target: Array) -> Array:
    """Find the temperature at which `reading` (monotonic in T) meets the target; NaN where it never does.

    As T → 0, only the c ties at the maximum keep weight; as T → ∞, all n entries become equal. In between, the
    reading moves strictly from log c to log n, so bisection on log T finds the target. The smallest gap bounds the
    bracket at one end and the largest gap at the other, so the bracket holds for any finite scale.
    """
    with np.errstate(all="ignore"):
        s = state(x)
        gap = np.max(x, axis=-1, initial=-np.inf)[..., None] - x
        open_gap = np.where((gap > 0.0) & np.isfinite(gap), gap, np.nan)
        smallest = _nan_safe(np.fmin.reduce, open_gap)
        largest = _nan_safe(np.fmax.reduce, open_gap)
        ends = np.log(s.c), np.log(s.n)
        cold, hot = ends if reading is entropy_of else (-ends[0], -ends[1])
        reachable = (np.minimum(cold, hot) < target) & (target < np.maximum(cold, hot)) & np.isfinite(s.m)
        rising = hot > cold
        # At T = smallest/800 every other weight underflows; at T = largest·2⁶⁰ all weights are equal in float64.
        low = np.log(smallest) - np.log(800.0)
        high = np.log(largest) + 60.0 * np.log(2.0)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            above = (reading(state(x, np.exp(middle)[..., None])) > target) == rising
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if np.all(~(high - low > 2e-16 * np.maximum(1.0, np.abs(middle)))):
                break
        return np.asarray(np.where(reachable, np.exp(0.5 * (low + high)), np.nan))


def _nan_safe(reduce: Callable[..., Array], x: Array) -> Array:
    """Return the smallest or largest gap, or NaN if there is none."""
    return np.asarray(reduce(x, axis=-1)) if x.shape[-1] else np.full(x.shape[:-1], np.nan)


def negative_log_likelihood(logits: Array, targets: Array, temperature: float) -> float:
    """Compute the mean of −log p[label]."""
    log_p = log_softmax(logits, temperature)
    return float(-np.mean(np.take_along_axis(log_p, targets[:, None], axis=-1)))


def calibration_slope(logits: Array, targets: Array, beta: float) -> float:
    """Compute the derivative of the mean loss in β = 1/T, the mean of Σ p·x − x[label]; it grows with β."""
    gap = logits - np.take_along_axis(logits, targets[:, None], axis=-1)
    p = softmax(logits, 1.0 / beta)
    return float(np.mean(np.sum(np.where(p > 0.0, p * gap, 0.0), axis=-1)))


def expected_calibration_error(logits: Array, targets: Array, temperature: float, bins: int = 15) -> float:
    """Sum (share in the bin)·|accuracy − mean confidence| over equal bins of confidence."""
    p = softmax(logits, temperature)
    confidence = np.max(p, axis=-1)
    right = np.argmax(p, axis=-1) == targets
    # A confidence of exactly k/bins belongs to the bin below, as in Guo et al. 2017: (k−1)/bins < c ≤ k/bins.
    which = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    error = 0.0
    for b in range(bins):
        inside = which == b
        if inside.any():
            error += float(np.mean(inside)) * abs(float(np.mean(right[inside]) - np.mean(confidence[inside])))
    return error
