"""The Jacobian of softmax, measured: autograd through our softmax against the formula."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

import softscope as ss
from softscope.experiments.ledger.claim import generator

TOLERANCE = 1e-12  # float64, weights up to 1, rows of up to 50 entries


class Errors(NamedTuple):
    """The largest absolute errors over all rows."""

    rows: int
    longest: int
    diagonal: float
    everywhere: float


@functools.cache
def autograd_against_formula() -> Errors:
    """∂s_i/∂x_j by autograd minus s_i(δ_ij − s_j), over 245 random rows of 2 to 50 entries."""
    import torch

    rng = generator("jacobian")
    diagonal, everywhere, rows = 0.0, 0.0, 0
    for n in range(2, 51):
        for _ in range(5):
            x = torch.from_numpy(3.0 * rng.standard_normal(n))
            measured = torch.autograd.functional.jacobian(ss.softmax, x).numpy()  # type: ignore[no-untyped-call]
            # The plain formula, from exp itself: our softmax must not vouch for itself.
            e = np.exp(x.numpy())
            s = e / e.sum()
            error = np.abs(measured - (np.diag(s) - np.outer(s, s)))
            diagonal, everywhere = max(diagonal, float(np.diag(error).max())), max(everywhere, float(error.max()))
            rows += 1
    return Errors(rows, 50, diagonal, everywhere)
