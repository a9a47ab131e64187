"""Dot products of random vectors: samples, and the exact distribution for normal components."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from softscope.experiments.ledger import Estimate, estimate, generator, variance_of
from softscope.experiments.ledger.texts import scores

DIMENSIONS = (1, 4, 16, 64, 256, 512)
COMPONENTS = ("normal", "uniform", "±1")


def _components(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Independent components with mean 0 and variance 1."""
    if kind == "uniform":
        return rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), shape)
    return rng.choice([-1.0, 1.0], shape)


@functools.cache
def sampled(d: int, kind: str = "normal") -> Any:
    """80 000 independent samples of q·k with d components each."""
    if kind == "normal":
        return scores.dot_products(d)
    rng, shape = generator(f"dot product {kind} {d}"), (20_000, d)
    # A quarter at a time, so that the components are never all in memory at once.
    quarters = (np.einsum("ij,ij->i", _components(kind, shape, rng), _components(kind, shape, rng)) for _ in range(4))
    return np.concatenate(list(quarters))


def mean_in_sds(d: int, kind: str = "normal") -> Estimate:
    """The mean of q·k in units of √d."""
    return estimate(sampled(d, kind) / math.sqrt(d))


def scaled_variance(d: int, kind: str = "normal") -> Estimate:
    """The variance of q·k/√d."""
    return variance_of(sampled(d, kind) / math.sqrt(d))


def _lengths(d: int) -> tuple[Any, Any]:
    """A grid of lengths ‖q‖ for d normal components, with weights that integrate their density.

    Given ‖q‖, q·k is normal with standard deviation ‖q‖, so the distribution of q·k is a mixture over lengths.
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
    """The probability that |q·k| exceeds this many standard deviations."""
    r, weights = _lengths(d)
    return float(2.0 * (weights @ _normal_cdf(-sds * math.sqrt(d) / r)))


def excess_kurtosis(d: int) -> float:
    """Exact, for q·k with d normal components: each product has second moment 1, fourth 3·3 and odd moments 0.

    >>> excess_kurtosis(1), excess_kurtosis(64) == 6 / 64
    (6.0, True)
    """
    return (d * 9 + 3 * d * (d - 1)) / d**2 - 3.0
