"""Statistics of sparse weights, which have a threshold and a support but no partition function."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Support:
    """Statistics of each query row of sparsemax or entmax attention; unlike partitions, they do not merge.

    A row that sees no key has size 0 and NaN elsewhere.

    Attributes:
        tau: The threshold τ in p = [(α−1)·x − τ]₊^(1/(α−1)).
        size: Number of keys with nonzero weight.
        entropy: Entropy in nats.
        collision: Σp².
        peak: The largest weight.
        jacobian_trace: The trace of diag(s) − s·sᵀ/Σs with s = p^(2−α).

    >>> import numpy as np, softscope as ss
    >>> q, k = np.ones((1, 1, 4)), np.stack([np.ones(4), np.zeros(4), np.zeros(4)])[None]
    >>> ss.attention_partition(q, k, alpha=2.0).size
    array([[1]])
    """

    tau: Any
    size: Any
    entropy: Any
    collision: Any
    peak: Any
    jacobian_trace: Any

    def __repr__(self) -> str:
        return f"Support(shape={tuple(self.size.shape)})"
