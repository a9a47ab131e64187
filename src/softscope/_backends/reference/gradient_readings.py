"""How much of what the loss wants reaches q and k, row by row (DESIGN: "Sharp and right, resting, or stuck?")."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softscope._backends.reference.jacobian import jacobian_product
from softscope._backends.reference.softmax import Array

# A row is blocked when transmission < BLOCKED·√n: at a peak weight of 1−ε transmission is about 1.4·ε·√n, so
# less than about 0.2% of the row's weight is still free.
BLOCKED = 0.0025

# Below this share of max|dP| the spread of dP is the rounding of equal numbers.
ROUNDING = 64.0 * np.finfo(np.float64).eps


class GradientReadings(NamedTuple):
    """One number per query row; over its n visible keys, with dP the gradient reaching the weights.

    demand        ‖dP − mean dP‖: how much the loss cares which key is read
    supply        ‖dS‖: how much of that reaches scale·q·k
    transmission  n·supply/demand: 1 for a uniform uncapped row
    advantage     (mean dP − Σ p·dP)/std dP: are the keys it reads better for the loss than a random one
    regret_ratio  (Σ p·dP − min dP)/(mean dP − min dP): 0 at the best key, 1 when unrelated
    blocked       transmission < 0.0025·√n

    Rows of one key, or with demand 0, are left out: NaN in transmission, advantage and regret_ratio, not blocked.

    >>> import numpy as np, softscope as ss
    >>> q, k, v = np.full((1, 1, 4), 20.0), 9.0 * np.eye(4)[None], np.eye(4)[None]
    >>> wants = np.array([[[-1.0, 0.0, 0.0, 0.0]]])     # the loss falls where the first value is read
    >>> ss.gradient_readings(q, k, v, wants).demand.round(3)
    array([[0.866]])
    """

    demand: Any
    supply: Any
    transmission: Any
    advantage: Any
    regret_ratio: Any
    blocked: Any


def gradient_readings(p: Array, dP: Array, slope: Array, visible: Array, alpha: float) -> GradientReadings:
    """The readings from weights p, the gradient dP that reaches them and the soft cap's slope, all (…, rows, keys)."""
    n = np.sum(visible, axis=-1)
    dP = np.where(visible, dP, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.sum(dP, axis=-1) / n
        centred = np.where(visible, dP - mean[..., None], 0.0)
        demand = np.linalg.norm(centred, axis=-1)
        demand = np.where(demand > ROUNDING * np.max(np.abs(dP), axis=-1, initial=0.0), demand, 0.0 * demand)
        supply = np.linalg.norm(slope * jacobian_product(p, np.where(visible, centred, 0.0), alpha), axis=-1)
        # Σ p·dP counted from the mean: with weights that sum to 1, Σ p·dP − mean dP = Σ p·centred.
        expected = np.sum(p * centred, axis=-1)
        lowest = np.min(np.where(visible, centred, np.inf), axis=-1, initial=np.inf)
        judged = (n > 1) & (demand > 0.0)
        transmission = np.where(judged, n * supply / demand, np.nan)
        advantage = np.where(judged, -expected / (demand / np.sqrt(n)), np.nan)
        regret = np.where(judged, (expected - lowest) / -lowest, np.nan)
        blocked = transmission < BLOCKED * np.sqrt(n)
    nothing = n == 0
    demand, supply = (np.where(nothing, np.nan, value) for value in (demand, supply))
    return GradientReadings(demand, supply, transmission, advantage, regret, blocked)
