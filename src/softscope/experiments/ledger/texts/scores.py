"""Random scores q·k, and the softmax of random rows, measured once for the claims that need them."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope as ss
from softscope.experiments.ledger.claim import generator
from softscope.experiments.ledger.estimate import Estimate, estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray


@functools.cache
def dot_products(d: int, n: int = 80_000) -> NDArray[np.float64]:
    """n independent dot products of standard normal vectors of d components."""
    rng = generator(f"dot products {d}")
    parts = []
    for start in range(0, n, 8_000):  # in chunks, to bound the memory
        q, k = rng.standard_normal((2, min(8_000, n - start), d), dtype=np.float32)
        parts.append(np.einsum("nd,nd->n", q, k, dtype=np.float64))
    return np.concatenate(parts)


@functools.cache
def entropies(d: int, scale: float | None = None, keys: int = 10, std: float = 1.0, n: int = 4_000) -> Estimate:
    """Mean entropy in nats of attention over random keys; each row has keys of its own, so that rows are independent.

    `scale=None` means 1/√d; `std` is the standard deviation of the components of q and k.
    """
    rng = generator(f"entropies {d} {scale} {keys} {std}")
    q = std * rng.standard_normal((n, 1, d))
    k = std * rng.standard_normal((n, keys, d))
    return estimate(ss.attention_partition(q, k, scale=scale).entropy)


@functools.cache
def jacobian_sizes(std: float, keys: int = 10) -> NDArray[np.float64]:
    """‖J‖ (Frobenius) of softmax at rows of independent normal logits with this standard deviation.

    It is the size of the gradient at the logits for a random gradient of unit variance at the weights.
    """
    rows = min(20_000, 2_000_000 // keys)
    logits = std * generator(f"jacobian norms {std} {keys}").standard_normal((rows, keys))
    return np.asarray(frobenius(ss.softmax(logits)))


def jacobian_norms(std: float, keys: int = 10) -> Estimate:
    """Its mean."""
    return estimate(jacobian_sizes(std, keys))


def reverses_above(std: float) -> int:
    """The number of keys, to the nearest ten, above which such logits leave more gradient than those of deviation 1.

    With more keys, a wide row is ever more often near a tie at its top, while a narrow one spreads ever thinner.
    """
    grid = (10, 30, 100, 300, 1_000)
    ratios = [jacobian_norms(std, keys).mean / jacobian_norms(1.0, keys).mean for keys in grid]
    return int(round(math.exp(np.interp(0.0, np.log(ratios), np.log(grid))), -1))


def frobenius(p: Any) -> Any:
    """‖diag(p) − p pᵀ‖ of each row: the square root of Σp² − 2Σp³ + (Σp²)²."""
    square = (p**2).sum(-1)
    return np.sqrt(np.maximum(square - 2.0 * (p**3).sum(-1) + square**2, 0.0))
