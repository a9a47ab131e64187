"""The maps that --map accepts: the library's, and rivals for comparison."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._backends.reference.jacobian import diagonal
from softscope.cli.explain import rivals
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]

CHOICES = ("softmax", "sparsemax", "entmax:A", *rivals.RIVALS)


@dataclasses.dataclass(frozen=True)
class Map:
    """A map from logits to weights along the last axis, and how each weight responds to its own logit.

    `response(logits, weights, T)` is ∂s_i/∂z_i with z = x/T; unlike ∂s/∂x, it cannot overflow for T near 0.
    """

    name: str
    weights: Callable[[Array, float], Array]
    response: Callable[[Array, Array, float], Array]
    alpha: float | None = None
    in_library: bool = True

    @property
    def title(self) -> str:
        """Return the name that --map takes."""
        return f"entmax:{self.alpha:g}" if self.name == "entmax" else self.name

    @property
    def logistic(self) -> bool:
        """Check whether its response is s(1−s)."""
        return self.name in ("softmax", "sigmoid") or self.alpha == 1.0


def named(text: str) -> Map:
    """Look up a map by name; `entmax:1.5` carries its alpha, and plain `entmax` uses the library's default.

    >>> named("entmax:1.25").alpha, named("relu").in_library
    (1.25, False)
    """
    name, colon, parameter = text.partition(":")
    if name == "entmax":
        return _entmax(name, _alpha(parameter) if colon else 1.5)
    if not colon and name == "softmax":
        return dataclasses.replace(
            _entmax(name, 1.0), weights=lambda x, T: np.asarray(softscope.softmax(x, temperature=T))
        )
    if not colon and name == "sparsemax":
        return _entmax(name, 2.0)
    if not colon and name in rivals.RIVALS:
        return Map(name, *rivals.RIVALS[name], in_library=False)
    raise UsageError("map.unknown", value=shown(text), known=", ".join(CHOICES))


def _entmax(name: str, alpha: float) -> Map:
    return Map(
        name,
        lambda x, T: np.asarray(softscope.entmax(x, alpha, temperature=T)),
        lambda _, s, __: diagonal(s, alpha),
        alpha,
    )


def _alpha(text: str) -> float:
    try:
        alpha = float(text)
    except ValueError:
        alpha = float("nan")
    if not 1.0 <= alpha < math.inf:
        raise UsageError("alpha.wrong", value=shown(text))
    return alpha
