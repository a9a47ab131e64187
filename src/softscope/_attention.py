"""Attention, additive attention, and the statistics of attention rows without the output."""

from __future__ import annotations

from typing import Any, Literal, overload

from softscope._arguments.arrays import Array, giver, unchanged
from softscope._arguments.attention import NO_VALUES, Call, prepare
from softscope._arguments.checks import flag, real_beside
from softscope._backends.choose import attention_backend_of, plain_attention, plain_statistics
from softscope._partition import Partition
from softscope._support import Support


@overload
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: Literal[False] = False,
) -> Array: ...
@overload
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: Literal[True],
) -> tuple[Array, Partition | Support]: ...
@overload
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: bool,
) -> Array | tuple[Array, Partition | Support]: ...
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: bool = False,
) -> Any:
    """Compute the weights of the logits softcap(scale·q·k) + mask and apply them to v.

    A query that sees no key gets zeros.

    Args:
        q: Queries, (…, heads, n, d), or (n, d) for a single head.
        k: Keys, (…, kv_heads, m, d). With fewer kv_heads than heads, each key head serves a group of query heads.
        v: Values, (…, kv_heads, m, dv).
        scale: A number, or one number per head. The default is 1/√d; 1.0 gives plain dot-product attention.
        causal: Query i sees keys j ≤ query_start + i.
        query_start: Position of the first query among the keys.
        window: (left, right): query i sees keys with −left ≤ j − (query_start + i) ≤ right; None means unlimited.
        mask: Boolean (True = attend) or additive floats, broadcastable to (…, heads, n, m). An additive entry of
            −inf, or at or below finfo.min/2, hides the key.
        softcap: Cap c; the scaled logits s become c·tanh(s/c).
        sink: One logit per head, neither scaled nor capped. It takes weight but contributes no value; 0.0 gives
            "softmax off by one".
        alpha: 1 for softmax, 2 for sparsemax, any other finite number above 1 for entmax; or one number per head. A
            tensor gets its gradient, so that each head can learn how sparse to be.
        return_partition: Also return the `Partition` of every row over its keys, excluding the sink; for alpha ≠ 1 and
            for one alpha per head, the `Support`.

    Returns:
        The output, (…, heads, n, dv); with `return_partition`, the pair (output, statistics).

    >>> import numpy as np, softscope as ss
    >>> q = k = v = np.eye(3)[None]                 # one head, three tokens
    >>> ss.attention(q, k, v, causal=True)[0, 0]    # the first sees itself alone
    array([1., 0., 0.])
    """
    if sink is None and type(alpha) in (float, int) and alpha == 1 and attend is _UNWATCHED:
        quick = plain_attention(q, k, v, scale, causal, query_start, window, mask, softcap, return_partition)
        if quick is not None:
            output, numbers = quick
            return (output, Partition.of_numbers(numbers, 1.0, unchanged)) if return_partition else output
    call = prepare(
        q, k, v, scale=scale, causal=causal, query_start=query_start, window=window, mask=mask,
        softcap=softcap, sink=sink, alpha=alpha,
    )  # fmt: skip
    return attend(call, giver(q), return_partition)


def attention_partition(
    q: Array,
    k: Array,
    *,
    scale: Any = None,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    softcap: float | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    rows: Any = None,
) -> Partition | Support:
    """Compute the statistics of `attention`'s rows, of shape (…, heads, n), without the output.

    The other arguments are as for `attention`. A sink is accepted but changes nothing, because the partition
    covers only the keys.

    Args:
        q: Queries, (…, heads, n, d).
        k: Keys, (…, kv_heads, m, d).
        rows: Indices of the queries to read. They keep their true positions, so pass masks in full.

    >>> import numpy as np, softscope as ss
    >>> q = k = np.zeros((1, 4, 8))
    >>> ss.attention_partition(q, k, causal=True, rows=[0, 3]).effective_support
    array([[1., 4.]])
    """
    if sink is None and rows is None and type(alpha) in (float, int) and alpha == 1:
        quick = plain_statistics(q, k, scale, causal, query_start, window, mask, softcap)
        if quick is not None:
            return Partition.of_numbers(quick, 1.0, unchanged)
    call = prepare(
        q, k, NO_VALUES, scale=scale, causal=causal, query_start=query_start, window=window, mask=mask,
        softcap=softcap, sink=sink, alpha=alpha, rows=rows,
    )  # fmt: skip
    return _statistics(call, giver(q), attention_backend_of(call.q).statistics_of_rows(call, None))


@overload
def additive_attention(
    q: Array,
    k: Array,
    v: Array,
    w_q: Array,
    w_k: Array,
    v_a: Array,
    *,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: Literal[False] = False,
) -> Array: ...
@overload
def additive_attention(
    q: Array,
    k: Array,
    v: Array,
    w_q: Array,
    w_k: Array,
    v_a: Array,
    *,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: Literal[True],
) -> tuple[Array, Partition | Support]: ...
@overload
def additive_attention(
    q: Array,
    k: Array,
    v: Array,
    w_q: Array,
    w_k: Array,
    v_a: Array,
    *,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: bool,
) -> Array | tuple[Array, Partition | Support]: ...
def additive_attention(
    q: Array,
    k: Array,
    v: Array,
    w_q: Array,
    w_k: Array,
    v_a: Array,
    *,
    causal: bool = False,
    query_start: int = 0,
    window: tuple[int | None, int | None] | None = None,
    mask: Array | None = None,
    sink: Any = None,
    alpha: Any = 1.0,
    return_partition: bool = False,
) -> Any:
    """Compute attention with the unscaled logits v_a·tanh(q·w_q + k·w_k) of Bahdanau et al. 2015.

    The other arguments are as for `attention`.

    Args:
        q: Queries, (…, heads, n, d of q).
        k: Keys, (…, kv_heads, m, d of k).
        v: Values, (…, kv_heads, m, dv).
        w_q: Query projection, (d of q, hidden).
        w_k: Key projection, (d of k, hidden).
        v_a: Output vector, (hidden,).

    >>> import numpy as np, softscope as ss
    >>> q = k = v = np.eye(3)
    >>> ss.additive_attention(q, k, v, np.eye(3), np.eye(3), np.zeros(3))[0].round(4)
    array([0.3333, 0.3333, 0.3333])
    """
    call = prepare(
        q, k, v, scale=1.0, causal=causal, query_start=query_start, window=window, mask=mask,
        sink=sink, alpha=alpha, same_width=False,
    )  # fmt: skip
    return attend(call, giver(q), return_partition, _additive_weights(call, w_q, w_k, v_a))


def _additive_weights(call: Call, w_q: Any, w_k: Any, v_a: Any) -> tuple[Array, Array, Array]:
    w_q, w_k, v_a = (real_beside(w, call.q, name) for w, name in ((w_q, "w_q"), (w_k, "w_k"), (v_a, "v_a")))
    for name, w, d in (("w_q", w_q, call.q.shape[-1]), ("w_k", w_k, call.k.shape[-1])):
        if w.ndim != 2 or v_a.ndim != 1 or tuple(w.shape) != (d, v_a.shape[0]):
            raise ValueError(
                f"{name} must be (d, hidden) and v_a (hidden,), but got {tuple(w.shape)} and {tuple(v_a.shape)} "
                f"with d = {d}; match them"
            )
    return w_q, w_k, v_a


def attend(call: Call, give: Any, return_partition: bool, additive: Any = None) -> Any:
    statistics = flag(return_partition, "return_partition")
    output, found = attention_backend_of(call.q).attend(call, additive, statistics)
    output = give(_head(output, call))
    return (output, _statistics(call, give, found)) if statistics else output


_UNWATCHED = attend  # a probe that listens puts a function of its own in place of `attend`, and must get every call


def _statistics(call: Call, give: Any, found: Any) -> Partition | Support:
    if call.options.sparse:
        return Support(**{name: give(_head(value, call)) for name, value in found.items()})
    state, highest = found
    return Partition(type(state)(*(_head(part, call) for part in state)), _head(highest, call), 1.0, give)


def _head(x: Array, call: Call) -> Array:
    return x[0] if call.single else x
