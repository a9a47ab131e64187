"""The Jacobian that the whole family shares: J = diag(s) − s·sᵀ/Σs, with s = p^(2−α) on the support."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._backends.reference.softmax import Array


def sensitivity(p: Array, alpha: Any) -> Array:
    """Compute s = p^(2−α) where p > 0, else 0: the weights themselves for softmax, 1 on the support for sparsemax."""
    return np.where(p > 0.0, np.power(np.where(p > 0.0, p, 1.0), 2.0 - alpha), p)


def jacobian(p: Array, alpha: Any = 1.0) -> Array:
    """Compute the dense matrix (…, n, n): symmetric, with rows that sum to 0; all zeros if there is no weight.

    The diagonal s_i·(1 − s_i/Σs) is computed as minus the sum of the row's other entries: 1 − s_i cancels near
    one-hot, the sum does not.
    """
    s = sensitivity(p, alpha)
    total = np.sum(s, axis=-1, keepdims=True)
    share = s / np.where(total == 0.0, 1.0, total)
    J = -s[..., :, None] * share[..., None, :]
    i = np.arange(p.shape[-1])
    J[..., i, i] = 0.0
    J[..., i, i] = -np.sum(J, axis=-1)
    return J


def jacobian_product(p: Array, v: Array, alpha: Any = 1.0) -> Array:
    """Compute J·v = s·(v − Σ s·v / Σs) without forming J. J is symmetric, so this is both jvp and vjp.

    J maps constants to 0, so v can be measured from its value at the largest weight; otherwise v − Σ s·v / Σs
    would cancel there near one-hot.
    """
    if p.shape[-1] == 0:
        return p * v
    s = sensitivity(p, alpha)
    v = v - np.take_along_axis(v, np.argmax(s, axis=-1, keepdims=True), axis=-1)
    total = np.sum(s, axis=-1, keepdims=True)
    return np.asarray(s * (v - np.sum(s * v, axis=-1, keepdims=True) / np.where(total == 0.0, 1.0, total)))
