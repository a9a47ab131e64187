"""What the doctor has read: the one form in which readings go from the probe to the record, the checks and the report.

A *site* is one place in the model where attention is computed: a module, or a call in it. A *snapshot* is what one
sampled step said: for each reading an array (sites, heads) in float32, NaN where a site has no such head or the reading
could not be taken.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from softscope.doctor.listen.reasons import Reason

Array = np.ndarray[Any, Any]

# Over visible keys, without a loss. A name alone is the mean over the rows that were read.
FORWARD = (
    "sharpness",  # 1 − entropy/log n
    "jacobian_trace",  # Σ p·(1 − p)
    "peak",  # the largest weight
    "max_logit",  # the largest scale·q·k of any row, before cap and mask
    "logit_spread",  # the standard deviation of a row's visible logits
    "sink_column",  # the key that holds most weight, summed over rows
    "sink_mass",  # its share of the weight
    "q_norm",
    "k_norm",
    "cosine",  # between q and k, the mean of |cos|
    "lse_min",  # the smallest log-sum-exp of any row
    "count",  # visible keys
)
# With a loss: DESIGN, "Sharp and right, resting, or stuck?"
GRADIENT = (
    "demand",
    "supply",
    "transmission",
    "advantage",  # over the blocked rows where there are any, else over all
    "advantage_error",  # its standard error, counting sequences and not rows
    "regret_ratio",
    "blocked",  # the share of rows that are
    "blocked_mass",  # the largest share that one column holds of the blocked rows' weight
)
# With a loss, where queries and keys are positions of one sequence. A head of which it is not known is judged without.
PATTERNS = ("blocked_offset_mass",)  # the largest share that one offset, key − query, holds of the blocked rows' weight
# Besides the mean, as "sharpness:median" and so on, where they say something.
QUANTILES = {"median": 0.5, "p05": 0.05, "p95": 0.95}


@dataclasses.dataclass(frozen=True)
class Site:
    """One place where attention is computed.

    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> site.scale == site.head_size**-0.5
    True
    """

    name: str  # the module's path in the model, and "#2" behind it for the second call in one forward pass
    kind: str  # how it was seen: "sdpa", "huggingface", "multihead", "softmax", "softscope"
    heads: int
    kv_heads: int
    scale: float  # what multiplied q·k; NaN where unknown (an explicit softmax)
    head_size: int  # d; 0 where unknown
    causal: bool = False
    fused: bool = True  # False: every logit was written down
    dropout: float = 0.0  # readings are of the weights before it
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What one sampled step said.

    >>> Snapshot(0, 0.1, None, {"sharpness": np.array([[0.25, 0.5]])}).has_loss
    False
    """

    step: int
    seconds: float  # since the probe began
    loss: float | None
    readings: dict[str, Array]  # name → (sites, heads)

    @property
    def has_loss(self) -> bool:
        """Whether a backward pass was seen: without one, starvation cannot be judged."""
        return "transmission" in self.readings


@dataclasses.dataclass(frozen=True)
class History:
    """All that is known of one run: its sites, its snapshots in the order of steps, and what could not be seen.

    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> steps = [Snapshot(step, 0.1, None, {"peak": np.array([[0.25, 0.5]])}) for step in (0, 20)]
    >>> History((site,), tuple(steps)).series("peak").shape                    # snapshots, sites, heads
    (2, 1, 2)
    """

    sites: tuple[Site, ...]
    snapshots: tuple[Snapshot, ...]
    unseen: tuple[tuple[str, Reason], ...] = ()  # module path and why
    facts: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )  # versions, model class, seeds; no argv, no environment

    def series(self, name: str) -> Array:
        """One reading over time: (snapshots, sites, heads); NaN where a snapshot has no such reading."""
        heads = max((site.heads for site in self.sites), default=0)
        nothing = np.full((len(self.sites), heads), np.nan, np.float32)
        found = [snapshot.readings.get(name, nothing) for snapshot in self.snapshots]
        return np.stack(found) if found else np.empty((0, *nothing.shape), np.float32)
