"""Dot products of random vectors: samples of them, and for normal components the exact distribution."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from softscope.experiments.ledger import Estimate, estimate, generator, variance_of

DIMENSIONS = (1, 4, 16, 64, 256, 512)
COMPONENTS = ("normal", "uniform", "±1")
_CHUNK = 1 << 20  # numbers drawn at a time: a sample of d = 512 need not stand in memory at once


def components(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Independent components with mean 0 and variance 1."""
    if kind == "normal":
        return rng.standard_normal(shape)
    if kind == "uniform":
        return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), shape)
    return rng.choice([-1.0, 1.0], shape)


@functools.cache
def sampled(d: int, kind: str = "normal", n: int = 0) -> Any:
    """Independent samples of q·k with d components each: 200 000 up to d = 4, else 40 000."""
    n = n or (200_000 if d <= 4 else 40_000)
    rng = generator(f"dot product {kind} {d}")
    rows = max(1, _CHUNK // d)
    parts = []
    for start in range(0, n, rows):
        shape = (min(rows, n - start), d)
        parts.append(np.einsum("ij,ij->i", components(kind, shape, rng), components(kind, shape, rng)))
    return np.concatenate(parts)


def mean_in_sds(d: int, kind: str = "normal") -> Estimate:
    """The mean of q·k in units of √d."""
    return estimate(sampled(d, kind) / math.sqrt(d))


def scaled_variance(d: int, kind: str = "normal") -> Estimate:
    """The variance of q·k/√d."""
    return variance_of(sampled(d, kind) / math.sqrt(d))


def _lengths(d: int) -> tuple[Any, Any]:
    """‖q‖ of d normal components on a grid, with weights that integrate its density.

    Given its length, q·k is normal with standard deviation ‖q‖: so the law of q·k is a mixture over lengths.
    """
    middle = math.sqrt(d - 1.0)
    r = np.linspace(max(1e-9, middle - 9.0), middle + 9.0, 4001)
    log_density = (d - 1) * np.log(r) - r * r / 2 - (d / 2 - 1) * math.log(2.0) - math.lgamma(d / 2)
    weights = np.exp(log_density) * (r[1] - r[0])
    weights[[0, -1]] /= 2
    return r, weights / weights.sum()


def _normal_cdf(x: Any) -> Any:
    return 0.5 * (1.0 + np.vectorize(math.erf, otypes=[float])(np.asarray(x) / math.sqrt(2.0)))


@functools.cache
def distance_from_normal(d: int) -> float:
    """The largest difference between the distribution functions of q·k/√d and of N(0, 1) (Kolmogorov–Smirnov)."""
    r, weights = _lengths(d)
    grid = np.linspace(0.0, 4.0, 101)
    exact = np.array([float(weights @ _normal_cdf(z * math.sqrt(d) / r)) for z in grid])
    return float(np.abs(exact - _normal_cdf(grid)).max())


def outside(d: int, sds: float) -> float:
    """The probability that |q·k| exceeds so many standard deviations."""
    r, weights = _lengths(d)
    return float(2.0 * (weights @ _normal_cdf(-sds * math.sqrt(d) / r)))


def excess_kurtosis(d: int) -> float:
    """Of q·k with d normal components, exact: a product has second moment 1 and fourth moment 3·3; others are 0.

    >>> excess_kurtosis(1), excess_kurtosis(64) == 6 / 64
    (6.0, True)
    """
    return (d * 9 + 3 * d * (d - 1)) / d**2 - 3.0
