"""Properties of the options `axis` and `where`, tested only if declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.testing.inputs import random
from softscope.testing.probe import BrokenError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope.testing.probe import Array, Probe

_NAN = float("nan")


def axis(probe: Probe) -> None:
    """Check that f(x, axis=k) gives each row along k what f gives it alone, for any axis, layout and neighbour."""
    tested = False
    for x, k, given in _arrays(probe):
        rows = _rows(x, k)
        alone = [probe.call(row) for row in rows]
        got = probe.weights(x, given=given, axis=k)
        for row, w, outcome in zip(rows, _rows(got, k), alone, strict=True):
            # Other properties report a row that f cannot handle alone, or that contains a NaN.
            if outcome.weights is None or not outcome.finite:
                continue
            tested = True
            if not probe.same(w, outcome.weights):
                raise BrokenError("axis", x, got, axis=k, row=row, want=outcome.weights, got=w)
    if not tested:
        probe.finite_weights(probe.array(0, 1))


def where(probe: Probe) -> None:
    """Check f(x, where=mask): masked entries get exactly 0, whatever their logit; the rest get what they get alone."""
    for x, mask in _masked(probe):
        _check_mask(probe, x, mask, {})
    if probe.axis:
        x = random(np.random.default_rng(probe.seed), 2, 3).astype(probe.dtype)
        for mask in (np.array([True, False, True]), np.array([[True], [False]])):
            for k in (-1, 0):
                _check_mask(probe, x, mask, {"axis": k})


def _check_mask(probe: Probe, x: Array, mask: Array, options: dict[str, Any]) -> None:
    """Check one array under one mask, which may need broadcasting."""
    k = options.get("axis", -1)
    got = probe.weights(x, where=mask, **options)
    full = np.broadcast_to(mask, x.shape)
    for row, seen, w in zip(_rows(x, k), _rows(full, k), _rows(got, k), strict=True):
        masked = w[~seen]
        if (masked != 0.0).any():
            if not seen.any():
                raise BrokenError("where.nothing", (x, mask), got, got=w)
            raise BrokenError("where.weight", (x, mask), got, weight=masked[masked != 0.0][0])
        rest = probe.call(row[seen])
        if seen.any() and rest.weights is not None and rest.finite and not probe.same(w[seen], rest.weights):
            raise BrokenError("where.others", (x, mask), got, want=rest.weights, got=w[seen])


def _rows(x: Array, k: int) -> Array:
    """Return the rows along axis k as a 2-D array."""
    moved = np.moveaxis(x, k, -1)
    return moved.reshape(-1, x.shape[k]) if x.size else moved.reshape(0, x.shape[k])


def _arrays(probe: Probe) -> Iterator[tuple[Array, int, Array | None]]:
    """Yield an array, an axis and, if the layout matters, the exact array to pass."""
    rng = np.random.default_rng(probe.seed)
    x = probe.array(0, 1, 2, 3, 5, 4).reshape(2, 3) / probe.dtype.type(2)
    yield from ((x, k, None) for k in (1, 0, -1, -2))
    cube = random(rng, 2, 3, 4).astype(probe.dtype)
    yield from ((cube, k, None) for k in (1, -2, 0, 2, -3))
    yield x, 0, np.copy(x, order="F")
    wide = np.zeros((2, 6), dtype=probe.dtype)
    wide[:, ::2] = x
    yield x, -1, wide[:, ::2]
    # A row's magnitude or NaN must not affect its neighbour.
    yield probe.array(1000, 1001, 0, 1).reshape(2, 2), -1, None
    yield probe.array(_NAN, 1, 0, 1).reshape(2, 2), -1, None
    yield probe.array(-np.inf, -np.inf, 0, 1).reshape(2, 2), -1, None
    yield from ((np.zeros(shape, dtype=probe.dtype), k, None) for shape, k in (((2, 0), -1), ((0, 3), 0), ((0, 3), 1)))


def _masked(probe: Probe) -> Iterator[tuple[Array, Array]]:
    """Yield logits and masks: simple ones, a huge logit or NaN behind the mask, all masked, masks to broadcast."""
    yes, no = True, False
    yield probe.array(1, 2, 3), np.array([yes, yes, no])
    yield probe.array(1, 2, 3), np.array([yes, yes, yes])
    yield probe.array(0, 10000, 1), np.array([yes, no, yes])
    yield probe.array(-1000, 0), np.array([yes, no])
    yield probe.array(0, _NAN, 1), np.array([yes, no, yes])
    yield probe.array(1, 2, 3), np.array([no, no, no])
    yield probe.array(1), np.array([no])
    yield probe.array(1, 2, 3), np.array([yes])
    yield probe.array(1, 2, 3), np.array([no])
