"""The logits that the battery tries, simple ones first, so that a counterexample is easy to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from softscope.testing.probe import Array, Probe

_SIMPLE: tuple[tuple[float, ...], ...] = (
    (0, 1),
    (1, 2, 3),
    (0, 0),
    (-1, 2),
    (-1, -2),
    (0,),
    (-1, 0, 1),
    (2, 2, 1),
    (3, 1, 2),
    (1.5,),
    (0, 0, 0, 0, 0),
    (-3, -1, 0, 1, 3),
    (0.5, 0.5, -2, 0.5, 0.25),
)


def moderate(probe: Probe) -> list[Array]:
    """Return simple logits, then random ones of length 2 … 100, none larger than 3.

    All are multiples of 1/64, so that adding a small integer is exact, even in float16; if the weights then differ,
    rounding is no excuse. exp(3 + 4), with the largest shift added, overflows in no dtype, so a map that overflows
    breaks `finite` and nothing else.
    """
    rng = np.random.default_rng(probe.seed)
    drawn = [random(rng, n) for n in (2, 3, 5, 16, 100) for _ in range(2)]
    return [probe.array(*logits) for logits in _SIMPLE] + [x.astype(probe.dtype) for x in drawn]


def random(rng: np.random.Generator, *shape: int) -> Array:
    """Return random multiples of 1/64 between −3 and 3, as float64."""
    return np.round(np.clip(rng.normal(0.0, 1.5, shape), -3.0, 3.0) * 64.0) / 64.0


def large(probe: Probe) -> list[Array]:
    """Return finite logits whose exp overflows or vanishes everywhere, up to the probe's largest."""
    big = probe.largest
    rows = ((1000, 1001, 1002), (1000,), (-1000, -1001), (1000, 0), (big, -big), (-big, 0, big), (big, big))
    return [probe.array(*logits) for logits in rows]
