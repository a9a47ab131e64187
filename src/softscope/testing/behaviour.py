"""Properties of how the weights respond to changes in the logits: shift, permutation, sharpening."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope.testing.inputs import moderate
from softscope.testing.probe import BrokenError

if TYPE_CHECKING:
    from softscope.testing.probe import Array, Probe

_SHIFTS = (1, -4, 4)
_FACTORS = (2, 3, 8, 64, 512, 4096)
_ONE_HOT = 0.1  # weights within this distance of one-hot count as one-hot


def shift(probe: Probe) -> None:
    """Check f(x + c) = f(x). The sums x + c are exact, see `moderate`."""
    for x, w in probe.usable(moderate(probe)):
        for c in _SHIFTS:
            moved = x + probe.dtype.type(c)
            v = probe.finite_weights(moved)
            if not probe.same(v, w):
                raise BrokenError("shift", (x, moved), (w, v), shift=c, before=w, after=v)


def permutation(probe: Probe) -> None:
    """Check f(x[order]) = f(x)[order], for the reversed order and a random one.

    It uses only distinct logits; the property `order` covers ties.
    """
    rng = np.random.default_rng(probe.seed)
    drawn = [((rng.permutation(n) - n // 2) / 32.0).astype(probe.dtype) for n in (16, 100)]
    distinct = [x for x in moderate(probe) if np.unique(x).size == x.size]
    for x, w in probe.usable(distinct + drawn):
        for order in (np.arange(x.size)[::-1], rng.permutation(x.size)):
            v = probe.finite_weights(x[order])
            if not probe.same(v, w[order]):
                raise BrokenError("permutation", (x, x[order]), (w, v), want=w[order], got=v)


def sharpens(probe: Probe) -> None:
    """Check that the weight of a unique largest logit grows with k in f(k·x), until the other weights vanish.

    k grows only until that shows, so that a naive exp need not overflow here; 4096 covers high temperatures. Linear
    normalisation gives the same weights for every k, and fails.
    """
    for x, w in probe.usable(_with_one_largest(probe)):
        top = int(np.argmax(x))
        before = w
        for k in _FACTORS:
            amplified = x * probe.dtype.type(k)
            v = probe.finite_weights(amplified)
            if v[top] < before[top] - probe.tolerance:
                raise BrokenError(
                    "sharpens.smaller", (x, amplified), (w, v), factor=k, before=before[top], after=v[top]
                )
            before = v
            if np.abs(v - (np.arange(x.size) == top)).max() <= _ONE_HOT:
                break
        else:
            raise BrokenError("sharpens.limit", (x, amplified), (w, v), factor=k, got=v)


def responds(probe: Probe) -> None:
    """Check that rising and falling logits get different weights, or that both differ from those of equal logits.

    At a very high temperature only large logits matter, so the check also tries logits 64 times as large.
    """
    for n in (2, 3, 5, 16):
        rising = probe.array(*(np.round(np.linspace(0.0, 2.0, n) * 64.0) / 64.0))
        falling = rising[::-1]
        w, v = probe.finite_weights(rising), probe.finite_weights(falling)
        others = (64 * rising, 64 * falling, 0 * rising)
        if probe.same(w, v) and all(probe.same(probe.finite_weights(x), w) for x in others):
            raise BrokenError("responds", (rising, falling), (w, v), one=rising, other=falling, got=w)


def _with_one_largest(probe: Probe) -> list[Array]:
    """Return the moderate logits of length ≥ 2, with a unique largest logit at least 1 ahead of the rest.

    From length 4 on, the largest logit is 0, so that a naive exp does not overflow on amplified logits, even in
    float16.
    """
    result = []
    for x in moderate(probe):
        if x.size >= 2:
            second, first = np.sort(x)[-2:]
            others = np.arange(x.size) != np.argmax(x)
            apart = x - others.astype(x.dtype) if first - second < 1.0 else x
            result.append(apart - first if x.size >= 4 else apart)
    return result
