"""The measurements: a row's weights, slopes and readings, at its temperature and at 1."""

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

# Σ s(1−s) below this means the largest weight exceeds 0.99, and less than 1% of the row can still move.
SATURATED = 0.02
_MOST_NUMBERS = 10**7  # in a file; beyond this we do not summarise its rows


@dataclasses.dataclass(frozen=True)
class Readings:
    """Numbers about a row of weights; NaN if the weights are undefined or not shares of a whole."""

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
        """Return ∂s_i/∂x_i."""
        with np.errstate(over="ignore"):
            return self.response / self.temperature


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Everything we measure on a row."""

    row: Row
    map: Map
    now: Weighing
    plain: Weighing  # at temperature 1
    supports: Array | None  # effective support of each row of the file; NaN if it has none

    @property
    def shares(self) -> bool:
        """Check whether the weights are shares of a whole: none negative, summing to 1."""
        return not math.isnan(self.now.readings.entropy)

    @property
    def findings(self) -> list[str]:
        """Name what a reader should know before using these weights."""
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
        p = softscope.partition(x, temperature=T)  # exact even where the weights round to 0 and 1
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
    """Compute −Σ s·log s of each row, NaN if its weights are not shares."""
    positive = np.where(weights > 0.0, weights, 1.0)
    entropy = -np.sum(positive * np.log(positive), axis=-1) + 0.0  # + 0.0 turns −0 into 0
    shares = (weights >= 0.0).all(axis=-1) & _whole(weights)
    return np.asarray(np.where(shares, np.maximum(entropy, 0.0), np.nan))


def _whole(weights: Array) -> Any:
    """Check whether each row sums to 1, up to rounding."""
    scale = np.maximum(1.0, np.max(np.abs(weights), axis=-1))
    return np.abs(np.sum(weights, axis=-1) - 1.0) <= 1e-9 * scale


def _supports(rows: Array, chosen: Map, T: float) -> Array:
    """Return each row's effective support; NaN if it holds NaN or infinity, or its weights are not shares."""
    x = rows.astype(np.float64)
    finite = np.asarray(np.isfinite(x).all(axis=-1))
    weights = chosen.weights(np.where(finite[:, None], x, 0.0), T)
    return np.asarray(np.where(finite, np.exp(_entropy(weights)), np.nan))
