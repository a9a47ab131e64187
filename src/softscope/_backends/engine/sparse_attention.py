"""The bridge to the kernels of sparse attention, any alpha ≥ 1 for each head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine, _threads
from softscope._backends.engine.attention import Array, dense, options_of, per_head, takes
from softscope._backends.engine.kernels import bits, brain

if TYPE_CHECKING:
    from softscope._arguments.attention import Call, Options

READINGS = ("tau", "size", "entropy", "collision", "peak", "jacobian_trace")
NUMBERS = len(READINGS) + 4  # and what gives a row's weights back in the backward pass


def offers(call: Call, additive: Any) -> bool:
    """Tell whether the engine supports the call: dot products, sparse weights, and no empty array."""
    return call.options.sparse and takes(call, additive)


def run(
    q: Array,
    k: Array,
    v: Array | None,
    options: Options,
    out: Array | None,
    numbers: Array,
    *,
    statistics: bool = True,
    threads: int = 0,
) -> None:
    """Fill `out` (…, heads, rows, dv), if given, and `numbers` (…, heads, rows, 10).

    Without statistics, only the last four numbers are valid.
    """
    batch = numbers.shape[:-3]
    _engine.sparse_attention(
        *(None if x is None else dense(x, batch) for x in (q, k, v)),
        alpha=per_head(options.alpha, q.shape[-3]),
        out=None if out is None else bits(out),
        numbers=numbers,
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
    numbers: Array,
    grad: Array,
    gradients: list[Array],
    dalpha: Array | None,
    threads: int = 0,
) -> None:
    """Fill `gradients`: dq, dk, dv, and each row's share of the scale's gradient; and, if wanted, of alpha's."""
    batch = numbers.shape[:-3]
    dq, dk, dv, dscale = gradients
    _engine.sparse_attention_backward(
        *(dense(x, batch) for x in (q, k, v)),
        alpha=per_head(options.alpha, q.shape[-3]),
        numbers=numbers,
        grad=dense(grad, batch),
        dq=bits(dq),
        dk=bits(dk),
        dv=bits(dv),
        dscale=dscale,
        dalpha=dalpha,
        options=options_of(options, (*batch, *q.shape[-3:-1], k.shape[-2])),
        brain=brain(q),
        threads=threads or _threads.count,
    )


def attend(call: Call, *, output: bool, statistics: bool) -> tuple[Array | None, Array]:
    """Compute the output and the numbers of a call on NumPy arrays."""
    shape, out = (*call.batch, *call.q.shape[-3:-1]), None
    if output:
        assert call.v is not None
        out = np.empty((*shape, call.v.shape[-1]), call.q.dtype.newbyteorder("="))
    numbers = np.empty((*shape, NUMBERS))
    run(call.q, call.k, call.v if output else None, call.options, out, numbers, statistics=statistics)
    return out, numbers


def read(numbers: Any, int64: Any) -> dict[str, Any]:
    """Name the engine's numbers as `Support` does, for arrays and tensors."""
    found = dict(zip(READINGS, numbers, strict=False))
    return found | {"size": int64(found["size"])}
