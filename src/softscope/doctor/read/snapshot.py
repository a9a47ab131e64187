"""The data model of readings, shared by the probe, the record, the checks and the report.

A *site* is one place in the model that computes attention: a module, or a call in it. A *snapshot* holds the readings
of one sampled step: for each reading a float32 array (sites, heads), NaN where a site has no such head or the reading
could not be taken.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from softscope.doctor.listen.reasons import Reason

Array = np.ndarray[Any, Any]

# Readings over visible keys that need no loss. A bare name is the mean over the rows read.
FORWARD = (
    "sharpness",  # 1 − entropy/log n
    "jacobian_trace",  # Σ p·(1 − p)
    "peak",  # the largest weight
    "max_logit",  # the largest scale·q·k of any row, before cap and mask
    "logit_spread",  # the standard deviation of a row's visible logits
    "sink_column",  # the key with the most weight, summed over rows
    "sink_mass",  # its share of the weight
    "q_norm",
    "k_norm",
    "v_norm",
    "cosine",  # mean |cos| between q and k
    "lse_min",  # the smallest log-sum-exp of any row
    "count",  # visible keys
)
# Readings that need a loss: they tell whether a sharp head is right, resting or stuck.
GRADIENT = (
    "demand",
    "supply",
    "transmission",
    "advantage",  # over the blocked rows if there are any, else over all
    "advantage_error",  # its standard error, counting sequences rather than rows
    "regret_ratio",
    "reached",  # the share of all rows, read or not, whose output a gradient reaches
    "judged",  # how many of the rows read carry loss
    "blocked",  # the share of blocked rows among them
    "blocked_mass",  # the largest share of the blocked rows' weight in one column
)
# Needs a loss, and queries and keys that are positions of one sequence. Heads for which it is unknown are judged
# without.
PATTERNS = (
    "blocked_offset_mass",  # the largest share of the blocked rows' weight at one offset, key − query
    "blocked_token_mass",  # the same on one kind of token, where the tokens are known
)
# What shows that the attention is not what it is meant to be; a healthy head has 0, except where said otherwise.
FAULTS = (
    "sees_ahead",  # the share of rows that see a later token; 1 in an encoder
    "ahead",  # the weight on later tokens
    "own",  # the share of rows that see themselves; 1 in a healthy head
    "padding",  # the weight on padding, where the batch says what is padding
    "blind",  # the share of tokens that see no key
    "q_alike",  # mean |cos| between the queries of different tokens; 1 if they lie on one line
    "k_alike",  # the same of the keys, their mean taken off
    "twice",  # the share of rows whose logits already are weights (explicit softmax)
    "dropped",  # the share of logits that are 0 where q·k is not (explicit softmax)
    "same_keys",  # the share of equal tokens that have equal keys in the first layer: 1 without positions
    "alone",  # the share of rows with loss that see one key only (needs a loss)
    "cut",  # 1 if a backward pass went through the model and none arrived here
    "q_trains", "k_trains", "v_trains",  # a code of `listen.trained_parts`: 0 if the projection trains
)  # fmt: skip
# Added to the mean where they are informative, as "sharpness:median" and so on.
QUANTILES = {"median": 0.5, "p05": 0.05, "p95": 0.95}


@dataclasses.dataclass(frozen=True)
class Site:
    """One place that computes attention.

    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> site.scale == site.head_size**-0.5
    True
    """

    name: str  # the module's path in the model, with "#2" appended for its second call in one forward pass
    kind: str  # how it was observed: "sdpa", "flex", "huggingface", "multihead", "softmax", "softscope"
    heads: int
    kv_heads: int
    scale: float  # the factor on q·k; NaN if unknown (an explicit softmax)
    head_size: int  # d; 0 if unknown
    causal: bool = False
    fused: bool = True  # False: every logit was materialised
    dropout: float = 0.0  # readings are of the weights before dropout
    dtype: str = "float32"
    expects: str = ""  # what the model's class says of its mask: "causal", "all", or "" if it says nothing


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The readings of one sampled step.

    >>> Snapshot(0, 0.1, None, {"sharpness": np.array([[0.25, 0.5]])}).has_loss
    False
    """

    step: int
    seconds: float  # since the probe started
    loss: float | None
    readings: dict[str, Array]  # name → (sites, heads)

    @property
    def has_loss(self) -> bool:
        """Whether a backward pass was seen: without one, starvation cannot be judged."""
        return "transmission" in self.readings


@dataclasses.dataclass(frozen=True)
class History:
    """Everything known about one run: its sites, its snapshots in step order, and what could not be seen.

    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> steps = [Snapshot(step, 0.1, None, {"peak": np.array([[0.25, 0.5]])}) for step in (0, 20)]
    >>> History((site,), tuple(steps)).series("peak").shape                    # snapshots, sites, heads
    (2, 1, 2)
    """

    sites: tuple[Site, ...]
    snapshots: tuple[Snapshot, ...]
    unseen: tuple[tuple[str, Reason], ...] = ()  # module path and reason
    facts: dict[str, Any] = dataclasses.field(
        default_factory=dict
    )  # versions, model class, seeds; no argv, no environment

    def series(self, name: str) -> Array:
        """One reading over time: (snapshots, sites, heads); NaN where a snapshot lacks the reading."""
        heads = max((site.heads for site in self.sites), default=0)
        nothing = np.full((len(self.sites), heads), np.nan, np.float32)
        found = [snapshot.readings.get(name, nothing) for snapshot in self.snapshots]
        return np.stack(found) if found else np.empty((0, *nothing.shape), np.float32)
