"""How large ∂L/∂Q is for random q, k and v and a random output gradient, with and without 1/√d."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from softscope.experiments.ledger import generator

DIMENSIONS = (16, 64, 256, 1024)
MATRICES, KEYS = 400, 10


@functools.cache
def row_norms(d: int, value_width: int, scaled: bool) -> Any:
    """‖∂L/∂q‖ of every row, (matrices, keys): ten queries, ten keys, L = Σ G ⊙ softmax(s·QKᵀ)V with G normal.

    The draws are the same with and without scaling. `value_width` is the number of components of v and G: the
    gradient that reaches a weight is a dot product of that many terms, so it grows with the width too.
    """
    import torch

    rng = generator(f"query gradients {d} {value_width}")
    widths = (d, d, value_width, value_width)
    q, k, v, g = (torch.from_numpy(rng.standard_normal((MATRICES, KEYS, width))) for width in widths)
    q.requires_grad_()
    weights = torch.softmax(q @ k.mT * (1.0 / math.sqrt(d) if scaled else 1.0), dim=-1)
    (grad,) = torch.autograd.grad((g * (weights @ v)).sum(), q)
    return np.asarray(grad.norm(dim=-1))


@functools.cache
def leads(d: int, value_width: int) -> Any:
    """How far the largest unscaled score of every row of the same draws leads the second, (matrices, keys)."""
    rng = generator(f"query gradients {d} {value_width}")
    q, k = (rng.standard_normal((MATRICES, KEYS, d)) for _ in range(2))
    ordered = np.sort(q @ k.transpose(0, 2, 1), axis=-1)
    return ordered[..., -1] - ordered[..., -2]


def local_slopes(numbers: dict[int, float]) -> list[float]:
    """The exponent of d between neighbouring points: −1 everywhere for 1/d.

    >>> local_slopes({1: 8.0, 2: 4.0, 4: 1.0})
    [-1.0, -2.0]
    """
    points = sorted(numbers.items())
    return [math.log(b / a) / math.log(e / d) for (d, a), (e, b) in itertools.pairwise(points)]
