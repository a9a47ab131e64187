"""Ways to make weights that the library does not offer, for comparison and to watch them break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

_CANCELLED = 1e-12  # a sum below this share of Σ|x| is the rounding error of a zero sum


def linear(x: Array, _: float) -> Array:
    """Compute x / Σx, NaN if the sum is 0. The temperature cancels.

    >>> linear(np.array([1.0, 2.0, -1.0]), 1.0), linear(np.array([1.0, -1.0]), 1.0)
    (array([ 0.5,  1. , -0.5]), array([nan, nan]))
    """
    return _shares(x)[0]


def relu(x: Array, _: float) -> Array:
    """Compute max(x, 0) / Σ max(x, 0), NaN if nothing is above 0. The temperature cancels.

    >>> relu(np.array([1.0, 3.0, -1.0]), 1.0)
    array([0.25, 0.75, 0.  ])
    """
    return _shares(np.maximum(x, 0.0))[0]


def sigmoid(x: Array, T: float) -> Array:
    """Compute 1 / (1 + exp(−x/T)), each number by itself.

    >>> sigmoid(np.array([0.0, 1000.0, -1000.0]), 1.0)
    array([0.5, 1. , 0. ])
    """
    with np.errstate(over="ignore", under="ignore"):
        z = x / T
        small = np.exp(-np.abs(z))
    return np.where(z >= 0.0, 1.0, small) / (1.0 + small)


def hardmax(x: Array, _: float) -> Array:
    """Give all the weight to the largest number; ties share it.

    >>> hardmax(np.array([1.0, 3.0, 3.0]), 1.0)
    array([0. , 0.5, 0.5])
    """
    top = x == np.max(x, axis=-1, keepdims=True)
    return top / np.sum(top, axis=-1, keepdims=True)


def _shares(x: Array) -> tuple[Array, Array]:
    """Compute x / Σx and Σx in units of max|x|, so that the sum cannot overflow."""
    unit = np.max(np.abs(x), axis=-1, keepdims=True)
    scaled = x / np.where(unit > 0.0, unit, 1.0)
    total = np.sum(scaled, axis=-1, keepdims=True)
    cancelled = np.abs(total) <= _CANCELLED * np.sum(np.abs(scaled), axis=-1, keepdims=True)
    total = np.where(cancelled, np.nan, total)
    return scaled / total + 0.0, total * unit  # + 0.0 turns −0 into 0


def _linear_response(x: Array, s: Array, T: float) -> Array:
    """Compute (1 − s_i)·T/Σx."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        # If the sum is tiny, T/Σx may be inf, and 0·inf is NaN.
        return np.where(s == 1.0, 0.0, 1.0 - s) * np.where(s == 1.0, 1.0, T / _shares(x)[1])


def _relu_response(x: Array, s: Array, T: float) -> Array:
    """Respond like linear among the numbers above 0; the others are stuck at 0."""
    return np.where(x > 0.0, _linear_response(np.maximum(x, 0.0), s, T), 0.0)


def _sigmoid_response(x: Array, s: Array, T: float) -> Array:
    """Compute s(1−s), with 1−s as the sigmoid of −x: near 1 the difference would cancel."""
    return np.asarray(s * sigmoid(-x, T))


def _hardmax_response(x: Array, _: Array, __: float) -> Array:
    """Return 0, the slope wherever there is one."""
    return np.zeros_like(x)


RIVALS: dict[str, tuple[Callable[[Array, float], Array], Callable[[Array, Array, float], Array]]] = {
    "linear": (linear, _linear_response),
    "relu": (relu, _relu_response),
    "sigmoid": (sigmoid, _sigmoid_response),
    "hardmax": (hardmax, _hardmax_response),
}
