"""The few numbers of a snapshot that a dashboard shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softscope.doctor.judge.states import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softscope.doctor.judge.history_view import Head
    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.read.snapshot import Site, Snapshot

# The readings sent to a scalar logger, each with the function that picks its worst head (largest or smallest value).
WORST = {
    "blocked": np.nanmax,
    "transmission": np.nanmin,
    "advantage": np.nanmin,
    "sharpness": np.nanmax,
    "max_logit": np.nanmax,
}


def scalars(
    sites: Sequence[Site], snapshot: Snapshot, states: Mapping[Head, HeadState] | None = None
) -> dict[str, float]:
    """A few numbers per site, however many heads it has, and the number of heads in each state.

    - `softscope/SITE/READING` and `softscope/SITE/READING_worst`, for each reading in `WORST`: the mean over heads and
      the value of the worst head. Ten for each site with a loss, four without: 120 for a model of 12 layers.
    - `softscope/SITE/state/STATE`: how many of the site's heads are in this state, for states that occur.
    - `softscope/heads/STATE`: how many heads of the model are in this state, for every state.

    NaN and infinite values are left out. Names are stable, and each of them is a valid name in MLflow, too: the second
    call of a module, `SITE#2`, is `SITE-2` here.

    >>> from softscope.doctor.read.snapshot import Site, Snapshot
    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> scalars([site], Snapshot(0, 0.1, None, {"sharpness": np.array([[0.25, 0.75]])}))
    {'softscope/encoder.0/sharpness': 0.5, 'softscope/encoder.0/sharpness_worst': 0.75}
    """
    found: dict[str, float] = {}
    for row, site in enumerate(sites):
        for name, worst in WORST.items():
            heads = snapshot.readings[name][row : row + 1] if name in snapshot.readings else np.empty((0, 0))
            known = heads[~np.isnan(heads)]
            if known.size:
                found[_named(site, name)] = float(known.mean())
                found[_named(site, f"{name}_worst")] = float(worst(known))
    if states:
        found |= {f"softscope/heads/{state}": 0.0 for state in STATES}
        for head, judged in states.items():
            for name in (_named(sites[head.site], f"state/{judged.state}"), f"softscope/heads/{judged.state}"):
                found[name] = found.get(name, 0.0) + 1.0
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _named(site: Site, what: str) -> str:
    return f"softscope/{site.name.replace('#', '-')}/{what}"
