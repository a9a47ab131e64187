"""Ten queries and ten keys drawn at random, as in the script of text 002: how sharp are the rows?"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import softscope as ss
from softscope.experiments.ledger import Estimate, estimate, generator

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = 10
DIMENSIONS = (16, 64, 256)


@dataclass(frozen=True)
class Sharpness:
    """Readings of many random 10 × 10 score matrices; the errors count matrices, since rows share their keys.

    Attributes:
        entropy: of a row, in nats.
        peak: largest weight of a row.
        trace: Σ s(1−s) of a row.
        over_half: share of rows in which one key outweighs all others together.
        largest: the largest weight of each matrix, one number per matrix.
        median_trace: median trace over all rows.
        median_lead: median lead of the largest score over the second largest, over all rows.
    """

    entropy: Estimate
    peak: Estimate
    trace: Estimate
    over_half: Estimate
    largest: np.ndarray
    median_trace: float
    median_lead: float


def _draws(d: int) -> int:
    return 1000 if d > 256 else 4000


@functools.cache
def _scores(d: int) -> np.ndarray:
    rng = generator(f"random attention {d}")
    parts = []
    for _ in range(_draws(d) // 500):  # 500 matrices at a time, to bound the memory at d = 1024
        q, k = rng.standard_normal((500, KEYS, d)), rng.standard_normal((500, KEYS, d))
        parts.append(q @ k.transpose(0, 2, 1))
    return np.concatenate(parts)


@functools.cache
def sharpness(d: int, factor: float) -> Sharpness:
    """Readings of softmax(factor · QKᵀ), components N(0, 1)."""
    scores = _scores(d) * factor
    p = ss.partition(scores)
    ordered = np.sort(scores, axis=-1)
    return Sharpness(
        entropy=estimate(p.entropy.mean(-1)),
        peak=estimate(p.peak.mean(-1)),
        trace=estimate(p.jacobian_trace.mean(-1)),
        over_half=estimate((p.peak > 0.5).mean(-1)),
        largest=p.peak.max(-1),
        median_trace=float(np.median(p.jacobian_trace)),
        median_lead=float(np.median(ordered[..., -1] - ordered[..., -2])),
    )


def plain(d: int) -> Sharpness:
    """Without scaling."""
    return sharpness(d, 1.0)


def scaled(d: int) -> Sharpness:
    """Divided by √d."""
    return sharpness(d, 1.0 / math.sqrt(d))


def size_where(reading: Callable[[Sharpness], float], level: float, d: int = 64) -> float:
    """The standard deviation of the components of q and k at which a reading of scaled scores rises to the level."""
    low, high = 0.0, 8.0
    for _ in range(12):
        middle = (low + high) / 2.0
        # Twice the standard deviation makes every score four times as large, while √d stays the same.
        low, high = (low, middle) if reading(sharpness(d, middle**2 / math.sqrt(d))) > level else (middle, high)
    return (low + high) / 2.0


def matrices(d: int) -> int:
    """How many score matrices the readings are based on."""
    return _draws(d)


@functools.cache
def error_of_weights(d: int, precision: str = "float32", scaled: bool = False) -> float:
    """The largest error of the weights of 2000 random rows if scores and softmax are computed in this precision."""
    import torch

    q, k = (torch.from_numpy(x) for x in generator(f"error of weights {d}").standard_normal((2, 200, KEYS, d)))
    q, k = (x.to(getattr(torch, precision)) for x in (q, k))
    factor = 1.0 / math.sqrt(d) if scaled else 1.0
    weights = torch.softmax(q @ k.mT * factor, dim=-1)
    exact = torch.softmax(q.double() @ k.double().mT * factor, dim=-1)
    return float((weights.double() - exact).abs().max())
