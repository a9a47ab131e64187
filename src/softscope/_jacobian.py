"""Derivatives of the maps: jacobian and jacobian_product."""

from __future__ import annotations

from typing import Any

from softscope._arguments.arrays import Array, beside, dtype_name, floating, giver, is_tensor
from softscope._arguments.axes import Axis, Rows, one_axis
from softscope._arguments.checks import alpha_for_rows, temperature_for_rows
from softscope._backends.choose import backend_of, plain_product


def jacobian(weights: Array, *, alpha: Any = 1.0, axis: int = -1, temperature: Any = 1.0) -> Array:
    """Compute the matrix ∂p_i/∂x_j at weights p: (diag(s) − s·sᵀ/Σs)/T with s = p^(2−α) on the support.

    For softmax, this is s_i·(δ_ij − s_j). It vanishes at one-hot, which is what starves a saturated head.

    Args:
        weights: Output of softmax, sparsemax or entmax.
        alpha: Alpha of the map: 1 for softmax, 2 for sparsemax, any other finite number above 1 for entmax; or an
            array with the axis kept as 1. Above 2, entries at small weights are large, and ±inf beyond the range.
        axis: A single axis; the result has it twice, as its last two axes.
        temperature: The temperature that produced the weights.

    >>> import softscope as ss
    >>> ss.jacobian([0.5, 0.5])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    p = floating(weights, "weights")
    rows = Rows(p.shape, one_axis(axis))
    a, t = alpha_for_rows(alpha, p, rows), temperature_for_rows(temperature, p, rows)
    return giver(weights)(backend_of(p).jacobian(rows.bring(p), a, t))


def jacobian_product(weights: Array, v: Array, *, alpha: Any = 1.0, axis: Axis = -1, temperature: Any = 1.0) -> Array:
    """Compute J·v without forming J: s·(v − Σ s·v / Σs)/T. J is symmetric, so this is both jvp and vjp.

    Args:
        weights: Output of softmax, sparsemax or entmax.
        v: A direction, or the gradient with respect to the weights, in the shape and dtype of weights.
        alpha: As for `jacobian`.
        axis: An int, a tuple of ints, or None for all axes.
        temperature: As for `jacobian`.

    >>> import softscope as ss
    >>> ss.jacobian_product([0.5, 0.25, 0.25], [1.0, 0.0, 0.0])
    array([ 0.25 , -0.125, -0.125])
    """
    if type(axis) is int:
        quick = plain_product(weights, v, alpha, temperature, axis)
        if quick is not None:
            return quick
    p = floating(weights, "weights")
    w = floating(beside(v, p, "v") if is_tensor(p) else v, "v")
    if is_tensor(p) != is_tensor(w):
        raise TypeError("v must be of the same kind as weights, but only one is a torch tensor; convert one")
    if tuple(p.shape) != tuple(w.shape):
        raise ValueError(
            f"v must have the shape of weights, {tuple(p.shape)}, but has {tuple(w.shape)}; broadcast it first"
        )
    if p.dtype != w.dtype and not (is_tensor(p) and not is_tensor(v)) and isinstance(v, type(weights)):
        raise TypeError(
            f"v must have the dtype of weights, {dtype_name(p)}, but has {dtype_name(w)}; convert one of them"
        )
    rows = Rows(p.shape, axis)
    a, t = alpha_for_rows(alpha, p, rows), temperature_for_rows(temperature, p, rows)
    return giver(weights)(rows.restore(backend_of(p).jacobian_product(rows.bring(p), rows.bring(w), a, t)))
