"""Means of random samples with standard errors, and comparisons that refuse to decide within the noise."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN = 4.0  # standard errors between a verdict and its opposite: about six seeds in a hundred thousand stray this far


class NoiseError(ArithmeticError):
    """The sample cannot decide: take a larger one, or ask a different question."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error. `f"{x:.2f}"` gives "1.93 ± 0.01"; ± is one standard error."""

    mean: float
    error: float
    n: int

    def above(self, bound: float) -> bool:
        """Check whether it is above the bound; raise if noise could flip the answer."""
        return self._decided(self.mean - bound, f"above {bound}")

    def below(self, bound: float) -> bool:
        """Check whether it is below the bound; raise if noise could flip the answer."""
        return self._decided(bound - self.mean, f"below {bound}")

    def agrees(self, value: float, tolerance: float) -> bool:
        """Check whether it is within the tolerance of the value; raise if noise could flip the answer."""
        return self._decided(tolerance - abs(self.mean - value), f"{value} ± {tolerance}")

    def _decided(self, margin: float, question: str) -> bool:
        if not abs(margin) > MARGIN * self.error:
            raise NoiseError(
                f"{self.mean:.6g} ± {self.error:.2g} (n = {self.n}) is too close to the edge of: {question}; "
                f"a verdict needs a margin of {MARGIN:g} standard errors"
            )
        return margin > 0.0

    def __format__(self, spec: str) -> str:
        places = spec or ".3g"
        error = format(self.error, places)
        # An error rounded away to 0 would read as certainty.
        return f"{format(self.mean, places)} ± {error if float(error) > 0.0 else format(self.error, '.1g')}"


def estimate(samples: Any) -> Estimate:
    """Average independent samples.

    >>> f"{estimate([1.0, 2.0, 3.0]):.2f}"
    '2.00 ± 0.58'
    """
    x = np.asarray(samples, dtype=np.float64).ravel()
    return Estimate(float(x.mean()), float(x.std(ddof=1) / math.sqrt(x.size)), x.size)


def variance_of(samples: Any) -> Estimate:
    """Estimate the variance of independent samples; the error uses the fourth moment, to allow for heavy tails.

    >>> variance_of([-1.0, 1.0, -1.0, 1.0]).n
    4
    """
    x = np.asarray(samples, dtype=np.float64).ravel()
    return estimate((x - x.mean()) ** 2)


def share(held: Any) -> Estimate:
    """Estimate the share of independent trials in which the event happened.

    >>> f"{share([True, False]):.1f}"
    '0.5 ± 0.5'
    """
    return estimate(np.asarray(held, dtype=np.float64))


def times(slow: Callable[[], object], fast: Callable[[], object], rounds: int = 7) -> float:
    """Return how many times longer `slow` takes than `fast`; best of several rounds, interleaved to share the load."""
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for i, f in enumerate((slow, fast)):
            start = time.perf_counter()
            f()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[0] / best[1]
