"""Edge cases: −inf, NaN, empty input, integers, and an input that must stay unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softscope.testing.inputs import moderate
from softscope.testing.probe import BrokenError

if TYPE_CHECKING:
    from softscope.testing.probe import Array, Probe

_INF, _NAN = float("inf"), float("nan")


def minus_infinity(probe: Probe) -> None:
    """Check that a −inf before, inside or after some logits gets exactly 0 and leaves their weights unchanged."""
    for rest, want in probe.usable(moderate(probe)):
        for positions in ([0], [rest.size], [0, rest.size // 2, rest.size]):
            x = np.insert(rest, positions, -_INF)
            gone = np.isneginf(x)
            w = probe.weights(x)
            if not (w[gone] == 0.0).all():
                raise BrokenError("minus_infinity.weight", x, w, weight=w[gone][w[gone] != 0.0][0])
            if not probe.same(w[~gone], want):
                raise BrokenError("minus_infinity.others", (rest, x), (want, w), want=want, got=w[~gone])


def all_minus_infinity(probe: Probe) -> None:
    """Check that all −inf gives all NaN, as softmax defines it, or all 0, as for a row with nothing to attend to.

    Both are honest. Uniform weights, which a mask of −1e9 gives, are not.
    """
    for n in (1, 2, 5):
        x = probe.array(*[-_INF] * n)
        w = probe.weights(x)
        if not (np.isnan(w).all() or (w == 0.0).all()):
            raise BrokenError("all_minus_infinity", x, w, got=w)


def nan(probe: Probe) -> None:
    """Check that one NaN makes all weights NaN: weights are relative to each other, so none of them is known."""
    for logits in ((_NAN, 1), (0, _NAN, 1), (1, 2, 3, _NAN), (_NAN,), (_NAN, _NAN), (-_INF, _NAN)):
        x = probe.array(*logits)
        w = probe.weights(x)
        if not np.isnan(w).all():
            raise BrokenError("nan", x, w, got=w)


def empty(probe: Probe) -> None:
    """Check that shape (0,) in gives shape (0,) out."""
    probe.weights(probe.array())


def input_unchanged(probe: Probe) -> None:
    """Check that f leaves a writable input unchanged, and accepts a read-only one with the same weights."""
    special = [
        probe.array(0, -_INF, 1),
        probe.array(-_INF, -_INF),
        probe.array(0, _NAN),
        probe.array(1000, 0),
    ]
    for x in _callable_with(probe, moderate(probe)[:5] + special):
        given = np.copy(x)
        raw = probe.call(x, given=given).raw
        if not np.array_equal(given, x, equal_nan=True):
            raise BrokenError("input_unchanged.changed", x, raw, before=x, after=given)
        given.flags.writeable = False
        outcome = probe.call(x, given=given)
        if outcome.weights is None:
            key = "input_unchanged.read_only" if outcome.problem == "raised" else outcome.problem
            raise BrokenError(key, x, outcome.raw, **outcome.values)


def integers(probe: Probe) -> None:
    """Check that an int64 array gets the same weights as the same numbers as floats."""
    whole = [x for x in moderate(probe) if (x == np.round(x)).all()]
    for floats, want in probe.usable(whole):
        x = floats.astype(np.int64)
        w = probe.weights(x)
        # f may return a coarser float for integers, as PyTorch does.
        tolerance = max(probe.tolerance, 64.0 * probe.call(x).eps)
        if not (np.abs(w - want) <= tolerance).all():
            raise BrokenError("integers", x, w, want=want, got=w)


def _callable_with(probe: Probe, inputs: list[Array]) -> list[Array]:
    """Return the inputs for which f returns any weights; if there are none, the property cannot hold."""
    result = [x for x in inputs if probe.call(x).weights is not None]
    if not result:
        probe.weights(inputs[0])
    return result
