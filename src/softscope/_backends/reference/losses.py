"""Cross-entropy and distillation of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._backends.reference.softmax import Array, log_softmax, softmax


def cross_entropy(x: Array, targets: Array, temperature: Any, label_smoothing: float) -> Array:
    """Compute −log p[target] of each row; with smoothing, (1−ε)·(−log p[target]) + ε·mean(−log p)."""
    log_p = log_softmax(x, temperature)
    loss = -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
    if label_smoothing:
        loss = (1.0 - label_smoothing) * loss - label_smoothing * np.mean(log_p, axis=-1)
    return np.asarray(loss)


def distillation(student: Array, teacher: Array, temperature: Any) -> Array:
    """Compute each row's T²·KL(teacher‖student) = T²·Σ p·(log p − log q), where p = 0 adds nothing."""
    p = softmax(teacher, temperature)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = log_softmax(teacher, temperature) - log_softmax(student, temperature)
        terms = np.where(p == 0.0, 0.0, p * gap)
        return np.asarray(np.sum(terms * np.square(temperature), axis=-1))
