"""The state of a row from which every reading follows (see `softscope.Partition`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softscope._backends.reference.softmax import Array, distances, hidden_to_minus_inf, maximum


class State(NamedTuple):
    """With d = (x − m)/temperature and Σ' over the entries that are not at the maximum.

    n = count   c = how many at the maximum   r = Σ' e^d   u = Σ' e^d·d   t = Σ' e^d·d²   w = Σ' e^2d
    """

    n: Any
    c: Any
    m: Any
    r: Any
    u: Any
    t: Any
    w: Any


def state(x: Array, temperature: Any = 1.0, visible: Array | None = None) -> State:
    """The state of each row, the axis removed. An entry is visible unless it is hidden or −inf."""
    x = hidden_to_minus_inf(x, visible)
    m = maximum(x)[..., 0]
    d = distances(x, temperature)
    e = np.exp(d)
    below = d < 0.0  # false for NaN, which so reaches c and with it every reading
    # Where exp underflows to 0, d may be −inf: 0·(−inf) is NaN, so d is cleared before it multiplies.
    d = np.where(e == 0.0, 0.0, d)
    others = np.where(below, e, 0.0)
    nothing = m == -np.inf  # all −inf: the distances are NaN, the sums are those of no entries

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
