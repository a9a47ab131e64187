"""The state of a row, from which every reading follows (see `softscope.Partition`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softscope._backends.reference.softmax import Array, distances, hidden_to_minus_inf, maximum


class State(NamedTuple):
    """The sums of a row, with d = (x − m)/temperature and Σ' over the entries below the maximum m.

    n = count   c = entries at the maximum   r = Σ' e^d   u = Σ' e^d·d   t = Σ' e^d·d²   w = Σ' e^2d
    """

    n: Any
    c: Any
    m: Any
    r: Any
    u: Any
    t: Any
    w: Any


def state(x: Array, temperature: Any = 1.0, visible: Array | None = None) -> State:
    """Compute each row's state, without the axis. An entry is visible unless it is hidden or −inf."""
    x = hidden_to_minus_inf(x, visible)
    m = maximum(x)[..., 0]
    d = distances(x, temperature)
    e = np.exp(d)
    below = d < 0.0  # False for NaN, so that NaN reaches c and thus every reading
    # Where exp underflows to 0, d may be −inf. 0·(−inf) is NaN, so clear d before multiplying.
    d = np.where(e == 0.0, 0.0, d)
    others = np.where(below, e, 0.0)
    nothing = m == -np.inf  # all −inf: the distances are NaN, so use the sums of an empty row

    def total(terms: Array) -> Array:
        return np.asarray(np.where(nothing, 0.0, np.sum(terms, axis=-1)))

    return State(
        n=np.sum(x != -np.inf, axis=-1),
        c=total(np.where(below, 0.0, e)),
        m=m,
        r=total(others),
        u=total(others * d),
        t=total(others * d * d),
        w=total(others * others),
    )
