"""Maps from logits to weights (softmax, log_softmax, sparsemax, entmax), and logsumexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope._arguments.arrays import Array, floating, giver, is_tensor, scalar_if_0d
from softscope._arguments.axes import Axis, Rows
from softscope._arguments.checks import alpha_for_rows, flag, temperature_for_rows, visible_for_rows
from softscope._arguments.out import checked_out, write
from softscope._backends.choose import backend_of, plain
from softscope._backends.numpy.maps import written_into


def softmax(
    x: Array, /, *, axis: Axis = -1, temperature: Any = 1.0, where: Any = None, out: Array | None = None
) -> Array:
    """Turn logits into weights that sum to 1: exp(x_i/T) / Σ_j exp(x_j/T).

    Args:
        x: Real numbers of any shape, as a NumPy array, list, torch tensor or DLPack array.
        axis: Axis along which the weights sum to 1: an int, a tuple of ints, or None for all axes.
        temperature: A number > 0, or an array that broadcasts against x with the axis kept as 1. Values below 1
            sharpen the weights; values above 1 flatten them.
        where: Boolean, broadcastable to x. False entries get weight 0; a row with no True entry gets all zeros.
        out: Array to write the result to; it may be x itself.

    Returns:
        The weights, in x's shape and as the same kind of array.

    >>> softmax([1.0, 2.0, 3.0]).round(4)
    array([0.09  , 0.2447, 0.6652])
    >>> softmax([1.0, 2.0, 3.0], temperature=10.0).round(4)
    array([0.3006, 0.3322, 0.3672])
    """
    return _map("softmax", x, axis, temperature, where, out)


def log_softmax(
    x: Array, /, *, axis: Axis = -1, temperature: Any = 1.0, where: Any = None, out: Array | None = None
) -> Array:
    """Compute the logarithm of softmax, x/T − log Σ exp(x/T); it stays accurate where the weight would underflow.

    Arguments are as for `softmax`. Hidden entries get −inf.

    >>> log_softmax([0.0, -100.0])
    array([-3.72007598e-44, -1.00000000e+02])
    """
    return _map("log_softmax", x, axis, temperature, where, out)


def sparsemax(
    x: Array, /, *, axis: Axis = -1, temperature: Any = 1.0, where: Any = None, out: Array | None = None
) -> Array:
    """Project x/T onto the simplex: [x/T − τ]₊. Low logits get weight exactly 0.

    Arguments are as for `softmax`. Equivalent to `entmax` with alpha = 2.

    >>> sparsemax([1.0, 2.0, 2.5])
    array([0.  , 0.25, 0.75])
    """
    return _map("entmax", x, axis, temperature, where, out, extra=(2.0,))


def entmax(
    x: Array,
    /,
    alpha: Any = 1.5,
    *,
    axis: Axis = -1,
    temperature: Any = 1.0,
    where: Any = None,
    out: Array | None = None,
) -> Array:
    """Interpolate between softmax (alpha 1) and sparsemax (alpha 2), and beyond: [(α−1)·x/T − τ]₊^(1/(α−1)).

    Above 2 it is sparser still, and a small step may move the weights far: see `bounds.moved`.

    The other arguments are as for `softmax`.

    Args:
        x: Real numbers of any shape.
        alpha: A finite number ≥ 1, or an array that broadcasts against x with the axis kept as 1. Tensors get
            gradients with respect to alpha.

    >>> entmax([1.0, 2.0, 3.0], 1.5).round(4)
    array([0.    , 0.1693, 0.8307])
    """
    return _map("entmax", x, axis, temperature, where, out, extra=(alpha,))


def logsumexp(
    x: Array, /, *, axis: Axis = -1, temperature: Any = 1.0, where: Any = None, keepdims: bool = False
) -> Array:
    """Compute log Σ exp(x/T), the log of the partition function; an empty row gives −inf.

    Arguments are as for `softmax`, without `out`. `keepdims=True` keeps the reduced axis with length 1.

    >>> round(float(logsumexp([1000.0, 1000.0])), 4)
    1000.6931
    """
    keepdims = flag(keepdims, "keepdims")
    if where is None and type(axis) is int and not keepdims:
        quick = plain("logsumexp", x, temperature, axis)
        if quick is not None:
            return scalar_if_0d(quick)
    array = floating(x, "x")
    rows = Rows(array.shape, axis)
    t = temperature_for_rows(temperature, array, rows)
    visible = visible_for_rows(where, array, rows)
    result = backend_of(array).logsumexp(rows.bring(array), t, visible)
    return giver(x)(result.reshape(rows.kept_shape) if keepdims else result)


def _map(
    name: str,
    x: Array,
    axis: Axis,
    temperature: Any,
    where: Any,
    out: Array | None,
    extra: tuple[Any, ...] = (),
) -> Array:
    if where is None and type(axis) is int:
        if out is not None and isinstance(x, np.ndarray):
            checked_out(out, floating(x, "x"))
        quick = plain(name, x, temperature, axis, out, *extra)
        if quick is not None:
            return quick
    array = floating(x, "x")
    rows = Rows(array.shape, axis)
    t = temperature_for_rows(temperature, array, rows)
    visible = visible_for_rows(where, array, rows)
    alphas = [alpha_for_rows(alpha, array, rows) for alpha in extra]
    if out is not None:
        checked_out(out, array, temperature, where, *extra)
        if visible is None and not is_tensor(array) and written_into(out, name, rows, array, *alphas, t):
            return out
    result = rows.restore(getattr(backend_of(array), name)(rows.bring(array), *alphas, t, visible))
    return giver(x)(result) if out is None else write(result, out)
