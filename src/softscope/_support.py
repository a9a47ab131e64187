"""Statistics of sparse weights, which have a threshold and a support instead of a partition function."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Support:
    """What sparsemax or entmax attention says of each query row; sparse rows do not merge.

    tau: the threshold, p = [(α−1)·x − τ]₊^(1/(α−1)). size: how many keys have weight. entropy in nats,
    collision Σp², peak the largest weight, jacobian_trace the trace of diag(s) − s·sᵀ/Σs, s = p^(2−α).
    A row that sees nothing has size 0 and NaN in the others.

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
