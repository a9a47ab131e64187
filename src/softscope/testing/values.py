"""Properties of the weights themselves: shape, finiteness, sign, sum, order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softscope.testing.inputs import large, moderate
from softscope.testing.probe import BrokenError
from softscope.testing.wording import foreign

if TYPE_CHECKING:
    from softscope.testing.probe import Probe, Weights


def returns(probe: Probe) -> None:
    """Check that every moderate input gives a NumPy array of floats in the input's shape."""
    for x in moderate(probe):
        probe.weights(x)
        raw = probe.call(x).raw
        if not isinstance(raw, np.ndarray):
            raise BrokenError("returns.floats", x, raw, came=f"{foreign(raw)} ({type(raw).__name__})")
        if raw.dtype.kind != "f":
            raise BrokenError("returns.floats", x, raw, came=f"{foreign(raw.tolist())} ({raw.dtype})")


def finite(probe: Probe) -> None:
    """Check that finite logits give finite weights, even where a bare exp overflows, or underflows to 0/0."""
    for x in moderate(probe):
        outcome = probe.call(x)
        if outcome.weights is not None and not outcome.finite:
            raise BrokenError("finite.moderate", x, outcome.raw, got=outcome.weights)
    for x in large(probe):
        got = probe.weights(x)
        if not np.isfinite(got).all():
            raise BrokenError("finite.large", x, got, got=got)


def non_negative(probe: Probe) -> None:
    """Check that no weight is negative, with no tolerance: rounding never makes a weight negative."""
    for x, w in probe.usable(moderate(probe) + large(probe)):
        if (w < 0.0).any():
            worst = int(np.argmin(w))
            raise BrokenError("non_negative", x, w, logit=x[worst], weight=w[worst])


def sums_to_one(probe: Probe) -> None:
    """Check that the weights sum to 1, within the tolerance that `Probe.sum_tolerance` explains."""
    for x, w in probe.usable(moderate(probe) + large(probe)):
        total, tolerance = _total(w), probe.sum_tolerance(x.size)
        if abs(total - 1.0) > tolerance:
            raise BrokenError("sums_to_one", x, w, total=total, tolerance=tolerance)


def _total(w: Weights) -> float:
    try:
        return math.fsum(w)
    except OverflowError:  # fsum raises where a sum of floats would be infinite
        return math.inf


def order(probe: Probe) -> None:
    """Check that the weights, sorted by logit, never fall, and that equal logits get equal weights."""
    for x, w in probe.usable(moderate(probe) + large(probe)):
        for i in range(x.size):
            smaller = np.flatnonzero((x < x[i]) & (w > w[i] + probe.tolerance))
            if smaller.size:
                j = smaller[0]
                raise BrokenError("order.larger", x, w, low=x[j], weight_low=w[j], high=x[i], weight_high=w[i])
            equal = np.flatnonzero((x == x[i]) & (np.abs(w - w[i]) > probe.tolerance))
            if equal.size:
                raise BrokenError("order.equal", x, w, logit=x[i], one=w[i], other=w[equal[0]])
