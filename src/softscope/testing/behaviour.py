"""Properties of how the weights answer when the logits change: shift, permutation, sharpening."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope.testing.inputs import moderate
from softscope.testing.probe import BrokenError

if TYPE_CHECKING:
    from softscope.testing.probe import Array, Probe

_SHIFTS = (1, -4, 4)
_FACTORS = (2, 3, 8, 64, 512, 4096)
_ONE_HOT = 0.1  # how far from one-hot weights may be that count as having got there


def shift(probe: Probe) -> None:
    """f(x + c) = f(x). The sums are exact, see `moderate`."""
    for x, w in probe.usable(moderate(probe)):
        for c in _SHIFTS:
            moved = x + probe.dtype.type(c)
            v = probe.finite_weights(moved)
            if not probe.same(v, w):
                raise BrokenError("shift", (x, moved), (w, v), shift=c, before=w, after=v)


def permutation(probe: Probe) -> None:
    """f(x[order]) = f(x)[order], for the reversed order and a random one.

    Only with distinct logits: how ties are treated is told by `order`.
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
    """The weight of a unique largest logit grows with k in f(k·x), until the others' have gone.

    k grows only until that is seen, so that a naive exp need not overflow here; 4096 is there for high
    temperatures. Linear normalisation is the same for every k, and fails.
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
    """Rising and falling logits differ in their weights, or else both differ from what level ones get.

    A very high temperature answers only to large logits, so they are tried 64 times as large too.
    """
    for n in (2, 3, 5, 16):
        rising = probe.array(*(np.round(np.linspace(0.0, 2.0, n) * 64.0) / 64.0))
        falling = rising[::-1]
        w, v = probe.finite_weights(rising), probe.finite_weights(falling)
        others = (64 * rising, 64 * falling, 0 * rising)
        if probe.same(w, v) and all(probe.same(probe.finite_weights(x), w) for x in others):
            raise BrokenError("responds", (rising, falling), (w, v), one=rising, other=falling, got=w)


def _with_one_largest(probe: Probe) -> list[Array]:
    """The moderate logits of length 2 and more, with one largest that is at least 1 ahead.

    From length 4 on the largest is 0, so that amplifying them makes no naive exp overflow in float16 either.
    """
    result = []
    for x in moderate(probe):
        if x.size >= 2:
            second, first = np.sort(x)[-2:]
            others = np.arange(x.size) != np.argmax(x)
            apart = x - others.astype(x.dtype) if first - second < 1.0 else x
            result.append(apart - first if x.size >= 4 else apart)
    return result
