"""The reading of an attention row: its partition's state and, given a gradient, the loss's demand and its supply.

`attention_partition`, `gradient_readings` and the doctor's probe all use it. The engine computes it in
engine/attention/read_rows.h, the torch backend with tensor operations in `torch/row_reading.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softscope._backends.reference import attention
from softscope._backends.reference.jacobian import jacobian_product
from softscope._backends.reference.partition import State, state
from softscope._backends.reference.softmax import Array

# If the spread of dP is below this many roundings of dP's size, its entries are equal and the loss demands nothing.
ROUNDINGS = 64.0


class GradientSums(NamedTuple):
    """Sums over the keys a row sees, with dP the gradient of the weights p; a sink is one more key with dP = 0.

    Attributes:
        count: Number of keys.
        mean: Mean dP.
        demand: ‖dP − mean‖, or 0 if that is only rounding.
        lowest: min (dP − mean).
        expected: Σ p·(dP − mean).
        supply: ‖dS‖, where dS = slope·J·dP with the soft cap's slope.
    """

    count: Any
    mean: Any
    demand: Any
    lowest: Any
    expected: Any
    supply: Any


class RowReading(NamedTuple):
    """The readings of rows, one number per row in every field; d = x − max x over the keys the row sees.

    Attributes:
        state: State of the logits x, without the sink; see `State`.
        highest: The largest score scale·q·k, before cap and mask.
        distance: Σ d. Together with squares, it measures the spread of the logits, whatever their weights.
        squares: Σ d².
        aligned: Σ |score|/|k|, which measures how well q and k align; None without the keys' lengths.
        gradient: The gradient's sums, or None without a gradient.
    """

    state: State
    highest: Any
    distance: Any
    squares: Any
    aligned: Any = None
    gradient: GradientSums | None = None


def read_rows(
    scores: Array, x: Array, visible: Array, sink: Any = None, dP: Array | None = None, softcap: float | None = None
) -> RowReading:
    """Read rows (…, keys) from scores, logits and visible keys; dP is the gradient of the weights."""
    highest = np.max(np.where(visible, scores, -np.inf), axis=-1, initial=-np.inf)
    found = state(x, 1.0, visible)
    with np.errstate(invalid="ignore"):
        d = np.where(visible, x - found.m[..., None], 0.0)
    gradient = None
    if dP is not None:
        slope = attention.cap_slope(scores, softcap)
        p = attention.weights(x, visible, None, 1.0)
        if sink is not None:
            x, visible = attention.with_sink(x, sink), attention.with_sink(visible, True)
            dP, slope = attention.with_sink(dP, 0.0), attention.with_sink(slope, 1.0)
            p = attention.weights(x, visible, None, 1.0)
        gradient = gradient_sums(p, dP, slope, visible, 1.0)
    return RowReading(found, highest, np.sum(d, axis=-1), np.sum(d * d, axis=-1), None, gradient)


def gradient_sums(p: Array, dP: Array, slope: Array, visible: Array, alpha: float) -> GradientSums:
    """Compute the sums from weights p, their gradient dP and the soft cap's slope, all (…, rows, keys)."""
    n = np.sum(visible, axis=-1)
    dP = np.where(visible, dP, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.sum(dP, axis=-1) / n
        centred = np.where(visible, dP - mean[..., None], 0.0)
        return GradientSums(
            count=n,
            mean=mean,
            demand=beyond_rounding(np.linalg.norm(centred, axis=-1), mean, np.finfo(np.float64).eps),
            lowest=np.min(np.where(visible, centred, np.inf), axis=-1, initial=np.inf),
            # Measure Σ p·dP from the mean: for weights that sum to 1, Σ p·dP − mean dP = Σ p·centred.
            expected=np.sum(p * centred, axis=-1),
            # A hidden key may hold NaN, and so may its slope.
            supply=np.linalg.norm(np.where(visible, slope * jacobian_product(p, centred, alpha), 0.0), axis=-1),
        )


def beyond_rounding(demand: Any, mean: Any, epsilon: float) -> Any:
    """Return the demand, or 0 where it is only the rounding of equal gradients; for arrays and tensors."""
    return demand * (demand > ROUNDINGS * epsilon * (abs(mean) + demand))
