"""Attention on NumPy arrays: the engine, or the definition in its own precision, one tile of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._backends.engine import attention as _engine
from softscope._backends.engine import sparse_attention as _sparse
from softscope._backends.numpy.maps import exact, quietly, rounded
from softscope._backends.reference import attention as _definition
from softscope._backends.reference import row_reading as _reading
from softscope._backends.reference.partition import State
from softscope._backends.reference.row_reading import GradientSums, RowReading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope._arguments.attention import Call
    from softscope._backends.reference.softmax import Array


def logits(call: Call, additive: Any) -> tuple[Array, Array, Array]:
    """Return the scores before the cap, the logits, and which keys are visible, all (…, heads, rows, m)."""
    if additive is None:
        scores = _definition.dot_scores(exact(call.q), exact(call.k), call.options.scale)
    else:
        scores = _definition.additive_scores(exact(call.q), exact(call.k), *additive)
    shown, bias = call.visible_and_bias()
    result = _definition.capped(scores, call.options.softcap)
    if bias is not None:
        result = result + exact(bias)
    visible = np.ones(1, dtype=bool) if shown is None else shown
    shape = np.broadcast_shapes(result.shape, visible.shape)
    result, scores = np.broadcast_to(result, shape), np.broadcast_to(scores, shape)
    return scores, result, np.broadcast_to(visible, shape) & (result != -np.inf)


@quietly
def attend(call: Call, additive: Any, statistics: bool) -> tuple[Any, Any]:
    """Return the weighted sum of the values, in q's dtype, and every row's statistics if requested."""
    if _engine.offers(call, additive):
        out, found = _engine.attend(call, output=True, statistics=statistics)
        return out, _read(found) if statistics else None
    if _sparse.offers(call, additive):
        out, numbers = _sparse.attend(call, output=True, statistics=statistics)
        return out, _support_of(numbers) if statistics else None
    parts = [_output(tile, additive) for tile in _tiles(call)]
    return np.concatenate(parts, axis=-2), statistics_of_rows(call, additive) if statistics else None


@quietly
def statistics_of_rows(call: Call, additive: Any) -> Any:
    """Return every row's state and largest score, or for alpha ≠ 1 a dictionary of readings."""
    if _engine.offers(call, additive):
        return _read(_engine.attend(call, output=False, statistics=True)[1])
    if _sparse.offers(call, additive):
        return _support_of(_sparse.attend(call, output=False, statistics=True)[1])
    if call.options.sparse:
        supports = [_support(tile, additive) for tile in _tiles(call)]
        return {name: np.concatenate([part[name] for part in supports], axis=-1) for name in supports[0]}
    parts = [_reading.read_rows(*logits(tile, additive)) for tile in _tiles(call)]
    return _joined(part.state for part in parts), np.concatenate([part.highest for part in parts], axis=-1)


@quietly
def gradient_sums(call: Call, grad_output: Array) -> GradientSums:
    """Sum up, for each row, what the loss demands and how much of it gets through."""
    if _engine.offers(call, None):
        found = _engine.read_rows(call, grad_output).gradient
        assert found is not None
        return found
    tiles = zip(_tiles(call), call.tiles(), strict=True)
    return _joined(_gradient_sums(tile, grad_output[..., rows, :]) for tile, rows in tiles)


def _joined(parts: Iterator[Any]) -> Any:
    """Concatenate tuples of arrays (…, rows) along the rows."""
    first, *others = parts
    return type(first)(*(np.concatenate(found, axis=-1) for found in zip(first, *others, strict=True)))


def _read(numbers: Any) -> tuple[State, Array]:
    return _engine.read(np.moveaxis(numbers, -1, 0), lambda n: n.astype(np.int64))


def _support_of(numbers: Array) -> dict[str, Array]:
    return _sparse.read(np.moveaxis(numbers, -1, 0), lambda n: n.astype(np.int64))


def _tiles(call: Call) -> Iterator[Call]:
    whole = call.spread()
    return (whole.of_rows(rows) for rows in whole.tiles())


def _output(call: Call, additive: Any) -> Array:
    _, x, visible = logits(call, additive)
    p = _definition.weights(x, visible, call.options.sink, call.options.alpha)
    return rounded(_definition.weighted_sum(p, visible, exact(call.v)), call.q.dtype)


def _support(call: Call, additive: Any) -> dict[str, Array]:
    _, x, visible = logits(call, additive)
    return _definition.support_readings(x, visible, call.options.alpha)


def _gradient_sums(call: Call, grad_output: Array) -> GradientSums:
    scores, x, visible = logits(call, None)
    with np.errstate(invalid="ignore"):
        dP = np.broadcast_to(exact(grad_output) @ np.swapaxes(exact(call.v), -1, -2), x.shape)
    options = call.options
    if not options.sparse:
        found: RowReading = _reading.read_rows(scores, x, visible, options.sink, dP, options.softcap)
        assert found.gradient is not None
        return found.gradient
    p = _definition.weights(x, visible, None, options.alpha)
    return _reading.gradient_sums(p, dP, _definition.cap_slope(scores, options.softcap), visible, options.alpha)
