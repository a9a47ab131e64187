"""Softmax's rivals: those that the texts name and two that they do not, each a map of one row."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope as ss
from softscope.testing import Report, check_simplex_map

if TYPE_CHECKING:
    from collections.abc import Callable

# Text 001's five reasons, each as the properties of the contract battery that it amounts to.
REASONS: dict[str, tuple[str, ...]] = {
    "stands out": ("order", "sharpens"),
    "in [0, 1]": ("non_negative",),
    "sums to 1": ("sums_to_one",),
    "differentiable": ("continuity", "smooth"),
    "a distribution": ("non_negative", "sums_to_one"),
}


def mixed_exponentials(x: Any) -> Any:
    """(eˣ + e²ˣ) / Σ(eˣ + e²ˣ), with the largest power factored out so that nothing overflows."""
    x = np.asarray(x, dtype=np.float64)
    if not x.size:
        return x
    logs = np.logaddexp(x, 2.0 * x)
    e = np.exp(logs - logs.max())
    return e / e.sum()


MAPS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: ss.softmax(x),
    "entmax 1.5": lambda x: ss.entmax(x, 1.5),
    "(eˣ + e²ˣ)/Σ": mixed_exponentials,
    "sparsemax": lambda x: ss.sparsemax(x),
    "x/Σx": lambda x: x / x.sum(),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "ReLU": lambda x: np.maximum(x, 0.0),
}


@functools.cache
def report(name: str) -> Report:
    """What the contract battery finds about a map."""
    return check_simplex_map(MAPS[name])


def reasons_missed(name: str) -> list[str]:
    """Text 001's reasons that a map does not meet."""
    found = report(name)
    return [reason for reason, properties in REASONS.items() if any(found[p].status == "broken" for p in properties)]
