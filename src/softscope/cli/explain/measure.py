"""What is measured: the weights and slopes of the row, and readings of them, at its temperature and at 1."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope

if TYPE_CHECKING:
    from softscope.cli.explain.maps import Map
    from softscope.cli.explain.source import Row

Array = np.ndarray[Any, Any]

# Σ s(1−s) below this: the largest weight is above 0.99, and less than 1% of the row is still free to move.
SATURATED = 0.02
_MOST_NUMBERS = 10**7  # in a file, for its rows to be summed up as well


@dataclasses.dataclass(frozen=True)
class Readings:
    """Numbers about a row of weights; NaN where the weights are no shares of a whole, or not defined."""

    weight_sum: float
    peak: float
    entropy: float
    effective_support: float
    sharpness: float
    collision: float
    jacobian_trace: float


@dataclasses.dataclass(frozen=True)
class Weighing:
    """The row at one temperature."""

    temperature: float
    weights: Array
    response: Array  # ∂s_i/∂z_i, z = x/T
    readings: Readings

    @property
    def slope(self) -> Array:
        """∂s_i/∂x_i."""
        with np.errstate(over="ignore"):
            return self.response / self.temperature


@dataclasses.dataclass(frozen=True)
class Explanation:
    """All that is measured of a row."""

    row: Row
    map: Map
    now: Weighing
    plain: Weighing  # at temperature 1
    supports: Array | None  # the effective support of each row of the file; NaN where it has none

    @property
    def shares(self) -> bool:
        """Whether the weights are shares of a whole: none negative, together 1."""
        return not math.isnan(self.now.readings.entropy)

    @property
    def findings(self) -> list[str]:
        """What a reader should know before using these weights, by name."""
        readings, weights = self.now.readings, self.now.weights
        defined, several = not math.isnan(readings.weight_sum), len(weights) > 1
        found = {
            "undefined": not defined,
            "negative_weights": bool((weights < 0.0).any()),
            "sum_not_one": defined and not bool(_whole(weights)),
            "zero_weights": bool((weights == 0.0).any()),
            "no_slope": several and defined and not (self.now.response != 0.0).any(),
            "saturated": several and self.map.name == "softmax" and readings.jacobian_trace < SATURATED,
        }  # fmt: skip
        return [name for name, is_so in found.items() if is_so]


def explain(row: Row, chosen: Map, temperature: float) -> Explanation:
    """Weigh the row at the temperature and at 1."""
    supports = None
    if row.rows is not None and not row.chosen and len(row.rows) > 1 and row.rows.size <= _MOST_NUMBERS:
        supports = _supports(row.rows, chosen, temperature)
    return Explanation(
        row, chosen, _weighed(row.logits, chosen, temperature), _weighed(row.logits, chosen, 1.0), supports
    )


def _weighed(x: Array, chosen: Map, T: float) -> Weighing:
    weights = chosen.weights(x, T)
    response = chosen.response(x, weights, T)
    readings = _readings(weights, float(np.sum(response)))
    if chosen.name == "softmax":
        p = softscope.partition(x, temperature=T)  # exact also where the weights round to 0 and 1
        names = ("peak", "entropy", "effective_support", "sharpness", "collision", "jacobian_trace")
        readings = Readings(readings.weight_sum, **{name: float(getattr(p, name)) for name in names})
    return Weighing(T, weights, response, readings)


def _readings(weights: Array, trace: float) -> Readings:
    total = float(np.sum(weights))
    entropy = float(_entropy(weights))
    full = math.log(len(weights))
    return Readings(
        weight_sum=total,
        peak=float(np.max(weights)),
        entropy=entropy,
        effective_support=math.exp(entropy),
        sharpness=1.0 - entropy / full if full else 0.0 * entropy,
        collision=float(np.sum(weights**2)) if not math.isnan(entropy) else math.nan,
        jacobian_trace=trace,
    )


def _entropy(weights: Array) -> Array:
    """−Σ s·log s of each row, NaN where the weights are no shares."""
    positive = np.where(weights > 0.0, weights, 1.0)
    entropy = -np.sum(positive * np.log(positive), axis=-1) + 0.0  # + 0.0: not −0
    shares = (weights >= 0.0).all(axis=-1) & _whole(weights)
    return np.asarray(np.where(shares, np.maximum(entropy, 0.0), np.nan))


def _whole(weights: Array) -> Any:
    """Whether each row sums to 1, as far as its rounding shows."""
    scale = np.maximum(1.0, np.max(np.abs(weights), axis=-1))
    return np.abs(np.sum(weights, axis=-1) - 1.0) <= 1e-9 * scale


def _supports(rows: Array, chosen: Map, T: float) -> Array:
    """The effective support of each row; NaN where it holds NaN or infinity, or its weights are no shares."""
    x = rows.astype(np.float64)
    finite = np.asarray(np.isfinite(x).all(axis=-1))
    weights = chosen.weights(np.where(finite[:, None], x, 0.0), T)
    return np.asarray(np.where(finite, np.exp(_entropy(weights)), np.nan))
