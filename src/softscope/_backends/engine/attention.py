"""The bridge to the attention kernels: NumPy arrays in; outputs, states and readings of every row out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine, _threads
from softscope._backends.engine.kernels import bits, brain, native
from softscope._backends.reference.partition import State
from softscope._backends.reference.row_reading import GradientSums, RowReading

if TYPE_CHECKING:
    from softscope._arguments.attention import Call, Options

Array = np.ndarray[Any, Any]

FAR = 1 << 60  # farther than any window reaches
STATE_NUMBERS = 8  # a row's n, c, m, r, u, t, w, and its largest score
READING_NUMBERS = 16  # the state's; Σd, Σd², Σ|score|/|k|; the gradient's mean, demand, lowest, expected, supply


def offers(call: Call, additive: Any) -> bool:
    """Tell whether the engine supports the call: dot products, softmax, and no empty array."""
    return not call.options.sparse and takes(call, additive)


def takes(call: Call, additive: Any) -> bool:
    """Tell whether the engine takes the arrays of the call: dot products, and none is empty."""
    return additive is None and 0 not in (*call.q.shape, *call.k.shape, *_shape(call.v))


def _shape(x: Any) -> tuple[int, ...]:
    return () if x is None else tuple(x.shape)


def options_of(options: Options, shape: tuple[int, ...]) -> _engine.AttentionOptions:
    """Convert the options to the engine's, for weights of this shape (…, heads, rows, m)."""
    heads, mask, brain_mask = shape[-3], options.mask, False
    if mask is not None:
        mask = native(mask)
        brain_mask = mask.dtype != bool and brain(mask)
        mask = np.broadcast_to(mask.view(np.uint8) if mask.dtype == bool else bits(mask), shape)
    return _engine.AttentionOptions(
        scale=per_head(options.scale, heads),
        positions=np.clip(options.positions, -FAR, FAR).astype(np.int64),
        left=FAR if options.left is None else min(options.left, FAR),
        right=FAR if options.right is None else min(options.right, FAR),
        mask=mask,
        brain_mask=brain_mask,
        softcap=options.softcap or 0.0,
        sink=None if options.sink is None else per_head(options.sink, heads),
    )


def per_head(value: Any, heads: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, np.float64).reshape(-1), (heads,)))


def run(
    q: Array,
    k: Array,
    v: Array | None,
    options: Options,
    out: Array | None,
    state: Array | None,
    *,
    statistics: bool = True,
    threads: int = 0,
) -> None:
    """Fill `out` (…, heads, rows, dv) and `state` (…, heads, rows, 8), whichever are given.

    Without statistics, only c, m and r of a state are valid.
    """
    batch = (out if out is not None else state).shape[:-3]  # type: ignore[union-attr]
    _engine.attention(
        *(None if x is None else dense(x, batch) for x in (q, k, v)),
        out=None if out is None else bits(out),
        state=state,
        options=options_of(options, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain=brain(q),
        statistics=statistics,
        threads=threads or _threads.count,
    )


def run_backward(
    q: Array,
    k: Array,
    v: Array,
    options: Options,
    out: Array,
    state: Array,
    grad: Array,
    gradients: list[Array],
    threads: int = 0,
) -> None:
    """Fill `gradients`: dq, dk, dv with out's batch, and each row's share of the scale's gradient (…, heads, rows)."""
    batch = out.shape[:-3]
    dq, dk, dv, dscale = gradients
    _engine.attention_backward(
        *(dense(x, batch) for x in (q, k, v)),
        out=dense(out, batch),
        state=state,
        grad=dense(grad, batch),
        dq=bits(dq),
        dk=bits(dk),
        dv=bits(dv),
        dscale=dscale,
        options=options_of(options, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain=brain(q),
        threads=threads or _threads.count,
    )


def run_reading(
    q: Array,
    k: Array,
    v: Array | None,
    grad: Array | None,
    options: Options,
    numbers: Array,
    *,
    key_lengths: Array | None = None,
    weights: Array | None = None,
    threads: int = 0,
) -> None:
    """Fill `numbers` (…, heads, rows, 16), and `weights` (…, heads, rows, m) if given.

    `grad` is the gradient of the output, and needs v. `key_lengths` holds 1/|k|, (…, kv_heads, m). Weights and lengths
    are float32, or float64 if q is.
    """
    batch = numbers.shape[:-3]
    lengths = None if key_lengths is None else np.broadcast_to(key_lengths, (*batch, *key_lengths.shape[-2:]))
    _engine.read_attention(
        *(None if x is None else dense(x, batch) for x in (q, k, v, grad)),
        key_lengths=lengths,
        numbers=numbers,
        weights=weights,
        options=options_of(options, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain=brain(q),
        threads=threads or _threads.count,
    )


def dense(x: Array, batch: tuple[int, ...]) -> Array:
    """Expand x to all batch axes, with a contiguous last axis; copy only if needed."""
    x = native(bits(x))
    if x.strides[-1] != x.itemsize and x.shape[-1] > 1:
        x = np.ascontiguousarray(x)
    return x if x.shape[:-3] == batch else np.broadcast_to(x, (*batch, *x.shape[-3:]))


def attend(call: Call, *, output: bool, statistics: bool) -> tuple[Array | None, Array | None]:
    """Compute the output and state of a call on NumPy arrays."""
    shape = (*call.batch, *call.q.shape[-3:-1])
    out = state = None
    if output:
        assert call.v is not None
        out = np.empty((*shape, call.v.shape[-1]), call.q.dtype.newbyteorder("="))
    if statistics:
        state = np.empty((*shape, STATE_NUMBERS))
    run(call.q, call.k, call.v if output else None, call.options, out, state)
    return out, state


def read_rows(call: Call, grad_output: Array) -> RowReading:
    """Read every row of a call on NumPy arrays, given the gradient of its output."""
    numbers = np.empty((*call.batch, *call.q.shape[-3:-1], READING_NUMBERS))
    q, k, v, grad = call.q, call.k, call.v, grad_output
    if grad.dtype != q.dtype:  # in the wider of the two, since a gradient can be too small or large for float16
        wide = np.float64 if np.float64 in (grad.dtype, q.dtype) else np.float32
        q, k, grad = (x.astype(wide, copy=False) for x in (q, k, grad))
        v = None if v is None else v.astype(wide, copy=False)
    run_reading(q, k, v, grad, call.options, numbers)
    return reading(np.moveaxis(numbers, -1, 0), call.options.sink is not None, lambda n: n.astype(np.int64))


def read(numbers: Any, int64: Any) -> tuple[State, Any]:
    """Split the engine's numbers into every row's state and its largest score, for arrays and tensors."""
    n, *others, highest = numbers
    return State(int64(n), *others), highest


def reading(numbers: Any, sink: bool, int64: Any) -> RowReading:
    """Split the engine's numbers into a full reading; with a sink, the gradient counts one more key."""
    state, highest = read(numbers[:STATE_NUMBERS], int64)
    distance, squares, aligned, *gradient = numbers[STATE_NUMBERS:]
    return RowReading(state, highest, distance, squares, aligned, GradientSums(state.n + sink, *gradient))
