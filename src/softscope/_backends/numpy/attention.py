"""Attention of NumPy arrays: by the engine, or by the definition in its own width, a tile of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._backends.engine import attention as _kernel
from softscope._backends.numpy.maps import exact, rounded
from softscope._backends.reference import attention as _definition
from softscope._backends.reference.gradient_readings import GradientReadings, gradient_readings
from softscope._backends.reference.partition import State, state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope._arguments.attention import Call
    from softscope._backends.reference.softmax import Array


def logits(call: Call, additive: Any) -> tuple[Array, Array, Array]:
    """The scores before the cap, the logits, and which keys are visible, all (…, heads, rows, m)."""
    if additive is None:
        scores = _definition.dot_scores(exact(call.q), exact(call.k), call.scale)
    else:
        scores = _definition.additive_scores(exact(call.q), exact(call.k), *additive)
    shown, bias = call.visible_and_bias()
    result = _definition.capped(scores, call.softcap)
    if bias is not None:
        result = result + exact(bias)
    visible = np.ones(1, dtype=bool) if shown is None else shown
    shape = np.broadcast_shapes(result.shape, visible.shape)
    result, scores = np.broadcast_to(result, shape), np.broadcast_to(scores, shape)
    return scores, result, np.broadcast_to(visible, shape) & (result != -np.inf)


def attend(call: Call, additive: Any, statistics: bool) -> tuple[Any, Any]:
    """The weighted sum of the values, in q's dtype, and the statistics of every row if they are asked for."""
    if _kernel.offers(call, additive):
        out, found = _kernel.attend(call, output=True, statistics=statistics)
        return out, _read(found) if statistics else None
    parts = [_output(tile, additive) for tile in _tiles(call)]
    return np.concatenate(parts, axis=-2), of_rows(call, additive) if statistics else None


def of_rows(call: Call, additive: Any) -> Any:
    """State and largest score of every row, or for alpha ≠ 1 a dictionary of readings."""
    if _kernel.offers(call, additive):
        return _read(_kernel.attend(call, output=False, statistics=True)[1])
    if call.alpha != 1.0:
        supports = [_support(tile, additive) for tile in _tiles(call)]
        return {name: np.concatenate([part[name] for part in supports], axis=-1) for name in supports[0]}
    parts = [_partition(tile, additive) for tile in _tiles(call)]
    found = State(*(np.concatenate(part, axis=-1) for part in zip(*(part[0] for part in parts), strict=True)))
    return found, np.concatenate([part[1] for part in parts], axis=-1)


def gradients(call: Call, grad_output: Array) -> GradientReadings:
    """What the loss wants of each row and what reaches it."""
    rows = zip(_tiles(call), call.tiles(), strict=True)
    parts = [_gradients(tile, grad_output[..., part, :]) for tile, part in rows]
    return GradientReadings(*(np.concatenate(reading, axis=-1) for reading in zip(*parts, strict=True)))


def _read(numbers: Any) -> tuple[State, Array]:
    return _kernel.read(np.moveaxis(numbers, -1, 0), lambda n: n.astype(np.int64))


def _tiles(call: Call) -> Iterator[Call]:
    whole = call.spread()
    return (whole.some(rows) for rows in whole.tiles())


def _output(call: Call, additive: Any) -> Array:
    _, x, visible = logits(call, additive)
    p = _definition.weights(x, visible, call.sink, call.alpha)
    return rounded(_definition.weighted_sum(p, visible, exact(call.v)), call.q.dtype)


def _partition(call: Call, additive: Any) -> tuple[State, Array]:
    scores, x, visible = logits(call, additive)
    return state(x, 1.0, visible), np.max(np.where(visible, scores, -np.inf), axis=-1, initial=-np.inf)


def _support(call: Call, additive: Any) -> dict[str, Array]:
    _, x, visible = logits(call, additive)
    return _definition.support_readings(x, visible, call.alpha)


def _gradients(call: Call, grad_output: Array) -> GradientReadings:
    scores, x, visible = logits(call, None)
    with np.errstate(invalid="ignore"):
        dP = exact(grad_output) @ np.swapaxes(exact(call.v), -1, -2)
    slope = _definition.cap_slope(scores, call.softcap)
    if call.sink is None:
        p = _definition.weights(x, visible, None, call.alpha)
    else:
        x, visible = _definition.with_sink(x, call.sink), _definition.with_sink(visible, True)
        dP, slope = _definition.with_sink(dP, 0.0), _definition.with_sink(slope, 1.0)
        p = _definition.weights(x, visible, None, 1.0)
    return gradient_readings(p, np.broadcast_to(dP, p.shape), slope, visible, call.alpha)
