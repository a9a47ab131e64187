"""How well probabilities are calibrated at a temperature."""

from __future__ import annotations

import numpy as np

from softscope._backends.reference.softmax import Array, log_softmax, softmax


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
