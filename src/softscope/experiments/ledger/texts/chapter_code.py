"""Text 003's functions, rewritten from its descriptions, and its listings as NumPy prints them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def naive(x: Any) -> Any:
    """exp(x)/Σexp(x), with no guard against overflow; the claims are about NumPy's warning."""
    e = np.exp(x)
    return e / np.sum(e)


def powers(x: Any) -> Any:
    """What the chapter's stable softmax exponentiates and gets: exp(x − max), over the last axis."""
    return np.exp(x - np.max(x, axis=-1, keepdims=True))


def stable(x: Any) -> Any:
    """The powers over their sum."""
    e = powers(x)
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
    """The chapter's single-head attention: scores, weights, output. It uses `k.T`, so matrices only."""
    scores = q @ k.T
    weights = stable(scores / np.sqrt(q.shape[-1]))
    return scores, weights, weights @ v


def log_weights(x: Any) -> Any:
    """The chapter's log-softmax: x − (max + log Σ exp(x − max))."""
    top = np.max(x)
    return x - (top + np.log(np.sum(np.exp(x - top))))


def sparse(x: Any) -> Any:
    """The chapter's sparsemax: sort, find how many entries stay above the threshold, subtract it, clip at 0."""
    ordered = np.sort(x)[::-1]
    counts = np.arange(1, len(x) + 1)
    sums = np.cumsum(ordered) - 1.0
    size = counts[ordered * counts > sums][-1]
    return np.maximum(x - sums[size - 1] / size, 0.0)


def printed(x: Any, decimals: int) -> str:
    """What `print(x.round(decimals))` shows, whatever print options are set.

    >>> printed(np.array([0.0900306, 0.2447285, 0.6652410]), 4)
    '[0.09   0.2447 0.6652]'
    """
    with np.printoptions(precision=8, suppress=False, floatmode="maxprec", threshold=1000, linewidth=75):
        return str(np.round(x, decimals))


def reported(function: Any, x: Any) -> tuple[Any, list[str], str]:
    """The result, warnings and exception name ("" if none) of a call, under NumPy's default settings."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            result, raised = function(x), ""
        except Exception as error:
            result, raised = None, type(error).__name__
    return result, [str(w.message) for w in seen], raised
