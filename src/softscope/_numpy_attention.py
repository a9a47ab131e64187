"""Attention in the NumPy room: the definition in float64, rounded at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._numpy import exact, rounded
from softscope._reference import attention as _definition
from softscope._reference.gradients import GradientReadings, gradient_readings
from softscope._reference.partition import State, state

if TYPE_CHECKING:
    from softscope._attention_call import Call
    from softscope._reference.rows import Array


def logits(call: Call, additive: Any) -> tuple[Array, Array, Array]:
    """The scores before the cap, the logits, and which keys are visible, all (…, heads, rows, m)."""
    if additive is None:
        scores = _definition.dot_scores(exact(call.q), exact(call.k), call.scale)
    else:
        scores = _definition.additive_scores(exact(call.q), exact(call.k), *additive)
    result = _definition.capped(scores, call.softcap)
    if call.bias is not None:
        result = result + exact(call.bias)
    visible = np.ones(1, dtype=bool) if call.visible is None else call.visible
    shape = np.broadcast_shapes(result.shape, visible.shape)
    result, scores = np.broadcast_to(result, shape), np.broadcast_to(scores, shape)
    return scores, result, np.broadcast_to(visible, shape) & (result != -np.inf)


def output(call: Call, additive: Any) -> Array:
    """The weighted sum of the values, in q's dtype."""
    _, x, visible = logits(call, additive)
    p = _definition.weights(x, visible, call.sink, call.alpha)
    return rounded(_definition.weighted_sum(p, visible, exact(call.v)), call.q.dtype)


def partition(call: Call, additive: Any) -> tuple[State, Array]:
    """The state of every row, and the largest visible score before cap and mask."""
    scores, x, visible = logits(call, additive)
    return state(x, 1.0, visible), np.max(np.where(visible, scores, -np.inf), axis=-1, initial=-np.inf)


def support(call: Call, additive: Any) -> dict[str, Array]:
    """The statistics of sparse rows."""
    _, x, visible = logits(call, additive)
    return _definition.support_readings(x, visible, call.alpha)


def gradients(call: Call, grad_output: Array) -> GradientReadings:
    """What the loss wants of each row and what reaches it."""
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
