"""The Jacobian that the whole family shares: J = diag(s) − s·sᵀ/Σs, with s = p^(2−α) on the support."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._backends.reference.softmax import Array


def sensitivity(p: Array, alpha: Any) -> Array:
    """Compute s = p^(2−α) where p > 0, else 0: the weights themselves for softmax, 1 on the support for sparsemax."""
    return np.where(p > 0.0, np.power(np.where(p > 0.0, p, 1.0), 2.0 - alpha), p)


def log_sensitivity(p: Array, alpha: Any) -> Array:
    """Compute log s, and −inf outside the support: for α > 2, s itself overflows where weights are small."""
    alpha = np.minimum(alpha, 1e305)  # more would change nothing but let the logarithm overflow, too
    return np.where(p <= 0.0, -np.inf, (2.0 - alpha) * np.log(np.where(p <= 0.0, 1.0, p)))


def jacobian(p: Array, alpha: Any = 1.0) -> Array:
    """Compute the dense matrix (…, n, n): symmetric, with rows that sum to 0; all zeros if there is no weight.

    The diagonal s_i·(1 − s_i/Σs) is computed as minus the sum of the row's other entries: 1 − s_i cancels near
    one-hot, the sum does not.
    """
    if np.any(np.asarray(alpha) > 2.0):
        log_s = log_sensitivity(p, alpha)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            top = np.max(log_s, axis=-1, keepdims=True, initial=-np.inf)
            log_share = log_s - (top + np.log(np.sum(np.exp(log_s - top), axis=-1, keepdims=True)))
            none = (log_s == -np.inf)[..., :, None] | (log_s == -np.inf)[..., None, :]
            J = -np.where(none, 0.0, np.exp(log_s[..., :, None] + log_share[..., None, :]))
    else:
        s = sensitivity(p, alpha)
        total = np.sum(s, axis=-1, keepdims=True)
        share = s / np.where(total == 0.0, 1.0, total)
        J = -s[..., :, None] * share[..., None, :]
    i = np.arange(p.shape[-1])
    J[..., i, i] = 0.0
    J[..., i, i] = -np.sum(J, axis=-1)
    return J


def diagonal(p: Array, alpha: Any = 1.0) -> Array:
    """Compute the diagonal s_i·(1 − s_i/Σs) of J; its sum is the trace. At the largest s, 1 − s_i/Σs would cancel."""
    if p.shape[-1] == 0:
        return p
    log_s = log_sensitivity(p, alpha)
    index = np.argmax(log_s, axis=-1, keepdims=True)
    is_top = np.arange(p.shape[-1]) == index
    top = np.take_along_axis(log_s, index, axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        relative = np.where(log_s == -np.inf, 0.0, np.exp(log_s - top))
        share = relative / np.maximum(np.sum(relative, axis=-1, keepdims=True), 1.0)
        s = np.where(is_top | (log_s == -np.inf), 0.0, np.exp(log_s))
        others = np.sum(s, axis=-1, keepdims=True) * np.max(share, axis=-1, keepdims=True)
        return np.asarray(np.where(is_top, others, s * (1.0 - share)))


def jacobian_product(p: Array, v: Array, alpha: Any = 1.0) -> Array:
    """Compute J·v = s·(v − Σ s·v / Σs) without forming J. J is symmetric, so this is both jvp and vjp.

    J maps constants to 0, so v can be measured from its value at the largest s; otherwise v − Σ s·v / Σs
    would cancel there near one-hot.
    """
    if p.shape[-1] == 0:
        return p * v
    if np.any(np.asarray(alpha) > 2.0):
        return _steep_product(p, v, alpha)
    s = sensitivity(p, alpha)
    v = v - np.take_along_axis(v, np.argmax(s, axis=-1, keepdims=True), axis=-1)
    total = np.sum(s, axis=-1, keepdims=True)
    return np.asarray(s * (v - np.sum(s * v, axis=-1, keepdims=True) / np.where(total == 0.0, 1.0, total)))


def _steep_product(p: Array, v: Array, alpha: Any) -> Array:
    """Compute J·v where s may leave the range of float64.

    One s, however large, does no harm: with it, J is nearly diag(s) of the others, and the entry at the largest s is
    minus the sum of theirs. J·v overflows only where two s do.
    """
    log_s = log_sensitivity(p, alpha)
    index = np.argmax(log_s, axis=-1, keepdims=True)
    others = (np.arange(p.shape[-1]) != index) & (log_s != -np.inf)
    top = np.take_along_axis(log_s, index, axis=-1)
    second = np.max(np.where(others, log_s, -np.inf), axis=-1, keepdims=True)
    v = v - np.take_along_axis(v, index, axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        relative = np.where(others, np.exp(log_s - second), 0.0)
        share = np.where(second == -np.inf, 0.0, np.exp(second - top))  # of the second in the largest
        moved = np.sum(np.where(others, relative * v, 0.0), axis=-1, keepdims=True)
        moved = moved / (1.0 + share * np.sum(relative, axis=-1, keepdims=True))
        product = np.where(others, _times_exp(v - share * moved, log_s), 0.0)
        product = np.where(np.arange(p.shape[-1]) == index, _times_exp(-moved, second), product)
    return np.asarray(np.where(np.isnan(p + v).any(axis=-1, keepdims=True), np.nan, product))


def _times_exp(value: Array, log: Array) -> Array:
    """Compute value·exp(log) in two factors, so that neither overflows before the product does; 0 stays 0."""
    half = np.exp(0.5 * log)
    return np.where(value == 0.0, 0.0, (value * half) * half)
