"""The bridge to attention's kernels: NumPy arrays in, the output and the state of every row out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softscope import _engine, _threads
from softscope._backends.engine.kernels import bits, brain, native
from softscope._backends.reference.partition import State

if TYPE_CHECKING:
    from softscope._arguments.attention import Call

Array = np.ndarray[Any, Any]

FAR = 1 << 60  # no window reaches that far
NUMBERS = 8  # n, c, m, r, u, t, w of a row, and its largest score


class Sight(NamedTuple):
    """How queries see keys, as the engine takes it: scale and sink (heads,), positions (rows,), window, cap, mask."""

    scale: Array
    sink: Array | None
    positions: Array
    left: int
    right: int
    softcap: float
    mask: Array | None


def offers(call: Call, additive: Any) -> bool:
    """Whether the engine computes this: dot products, softmax, and something in every array."""
    return additive is None and call.alpha == 1.0 and 0 not in (*call.q.shape, *call.k.shape, *_shape(call.v))


def _shape(x: Any) -> tuple[int, ...]:
    return () if x is None else tuple(x.shape)


def sight(call: Call) -> Sight:
    """What the engine has to know of a call of NumPy arrays, but for the arrays themselves."""
    heads = call.q.shape[-3]
    return Sight(
        scale=_per_head(call.scale, heads),
        sink=None if call.sink is None else _per_head(call.sink, heads),
        positions=np.clip(call.positions, -FAR, FAR).astype(np.int64),
        left=FAR if call.left is None else min(call.left, FAR),
        right=FAR if call.right is None else min(call.right, FAR),
        softcap=call.softcap or 0.0,
        mask=call.mask,
    )


def _per_head(value: Any, heads: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, np.float64).reshape(-1), (heads,)))


def run(
    q: Array,
    k: Array,
    v: Array | None,
    how: Sight,
    out: Array | None,
    state: Array | None,
    *,
    statistics: bool = True,
    threads: int = 0,
) -> None:
    """Fill `out` (…, heads, rows, dv) and `state` (…, heads, rows, 8), or what of them is asked for.

    Without statistics only c, m and r of a state are right.
    """
    batch = (out if out is not None else state).shape[:-3]  # type: ignore[union-attr]
    arrays = [None if x is None else _dense(x, batch) for x in (q, k, v)]
    _engine.attention(
        *arrays,
        None if out is None else bits(out),
        state,
        *_seen(how, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain(q),
        statistics,
        threads or _threads.count,
    )


def run_back(
    q: Array,
    k: Array,
    v: Array,
    how: Sight,
    out: Array,
    state: Array,
    grad: Array,
    given: list[Array],
    threads: int = 0,
) -> None:
    """Fill `given`: dq, dk and dv of out's batch, and (…, heads, rows) what each row adds to the scale's gradient."""
    batch = out.shape[:-3]
    *gradients, dscale = given
    _engine.attention_backward(
        *(_dense(x, batch) for x in (q, k, v, out)),
        state,
        _dense(grad, batch),
        *(bits(x) for x in gradients),
        dscale,
        *_seen(how, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain(q),
        threads or _threads.count,
    )


def _seen(how: Sight, shape: tuple[int, ...]) -> tuple[Any, ...]:
    mask = how.mask
    brain_mask = False
    if mask is not None:
        mask = native(mask)
        brain_mask = mask.dtype != bool and brain(mask)
        mask = np.broadcast_to(mask.view(np.uint8) if mask.dtype == bool else bits(mask), shape)
    return how.scale, how.sink, how.positions, how.left, how.right, how.softcap, mask, brain_mask


def _dense(x: Array, batch: tuple[int, ...]) -> Array:
    """x with all batch axes, and its last axis without gaps; copied only if it has them."""
    x = native(bits(x))
    if x.strides[-1] != x.itemsize and x.shape[-1] > 1:
        x = np.ascontiguousarray(x)
    return x if x.shape[:-3] == batch else np.broadcast_to(x, (*batch, *x.shape[-3:]))


def attend(call: Call, *, output: bool, statistics: bool) -> tuple[Array | None, Array | None]:
    """Output and state of a call of NumPy arrays."""
    shape = (*call.batch, *call.q.shape[-3:-1])
    out = state = None
    if output:
        assert call.v is not None
        out = np.empty((*shape, call.v.shape[-1]), call.q.dtype.newbyteorder("="))
    if statistics:
        state = np.empty((*shape, NUMBERS))
    run(call.q, call.k, call.v if output else None, sight(call), out, state)
    return out, state


def read(numbers: Any, int64: Any) -> tuple[State, Any]:
    """The state of every row from the engine's numbers, apart, and the largest score. For arrays and tensors alike."""
    n, *others, highest = numbers
    return State(int64(n), *others), highest
