"""Softmax and its rivals: ways to turn scores into weights, each defined once, on NumPy arrays along the last axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Text, same

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: dict[str, Text] = {
    "softmax": same("softmax"),
    "entmax": same("entmax 1.5"),
    "mixed": same("(eˣ + e²ˣ)/Σ"),
    "sparsemax": same("sparsemax"),
    "linear": same("x/Σx"),
    "relu_alone": same("ReLU"),
    "relu": same("ReLU/Σ"),
    "sigmoid": same("sigmoid"),
    "sigmoid_bias": same("sigmoid(x − ln n)"),
    "hardmax": same("hardmax"),
}


def share(x: Any) -> Any:
    """Divide by the sum; where the sum is 0 there is no answer, NaN.

    >>> share(np.array([1.0, 2.0, -1.0])), share(np.array([1.0, -1.0]))
    (array([ 0.5,  1. , -0.5]), array([nan, nan]))
    """
    with np.errstate(all="ignore"):
        total = x.sum(-1, keepdims=True)
        return np.where(total == 0.0, np.nan, x / total)


def relu(x: Any) -> Any:
    """Keep what is above 0."""
    return np.maximum(x, 0.0)


def sigmoid(x: Any) -> Any:
    """Compute 1 / (1 + exp(−x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))


def hardmax(x: Any) -> Any:
    """Give all the weight to the largest; ties share it.

    >>> hardmax(np.array([1.0, 3.0, 3.0]))
    array([0. , 0.5, 0.5])
    """
    top = (x == x.max(-1, keepdims=True, initial=-np.inf)).astype(np.float64)
    return share(top)


def mixed(x: Any) -> Any:
    """Compute (eˣ + e²ˣ) / Σ(eˣ + e²ˣ), with the largest power factored out so that nothing overflows."""
    logs = np.logaddexp(x, 2.0 * x)
    e = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


# The library's maps are looked up at each call, so that a test which breaks one of them breaks it here too.
MAPS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: softscope.softmax(x),
    "entmax": lambda x: softscope.entmax(x, 1.5),
    "mixed": mixed,
    "sparsemax": lambda x: softscope.sparsemax(x),
    "linear": share,
    "relu_alone": relu,
    "relu": lambda x: share(relu(x)),
    "sigmoid": sigmoid,
    "sigmoid_bias": lambda x: sigmoid(x - np.log(x.shape[-1])),
    "hardmax": hardmax,
}
