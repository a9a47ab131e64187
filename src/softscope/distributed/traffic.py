"""How many bytes a call sends, as formulas: of rows, ranks and dtype. Tests compare them with what `counting` counts.

A call gathers one block from every rank. A block is a header of 24 bytes and, for each row, a few numbers:

| function | forward | backward |
|---|---|---|
| `softmax` | m, z − 1 | largest weight, its gradient, Σp, Σp·(g − its gradient) |
| `log_softmax` | m, z − 1 | Σg |
| `logsumexp` | m, z − 1 | nothing |
| `cross_entropy` | m, z − 1, the target's logit; Σx if labels are smoothed | nothing |
| `partition` | n, c, m, r, u, t, w | nothing |

m, the target's logit, the largest weight and its gradient travel as they are, in x's dtype. z − 1 travels in float32,
or in float64 if x is float64. The other sums and the partition are float64. Each rank sends its block to all others.

>>> bytes_sent("cross_entropy", rows=256, ranks=2, dtype="float32")
3096
>>> gathered_logits(rows=256, classes=32_768, ranks=2, dtype="float32")
16777216
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from softscope._arguments.attention import sides
from softscope.distributed._attention import Header
from softscope.distributed._ring import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.distributed._layout import Layout

__all__ = [
    "Traffic",
    "attention_backward",
    "attention_forward",
    "attention_hops",
    "bytes_sent",
    "gathered_logits",
]

HEADER = 24  # bytes: a digest, a length, whether the rank refuses

Function = Literal["softmax", "log_softmax", "logsumexp", "cross_entropy", "partition"]

_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_WIDE = 8

# How many numbers a row has in x's dtype, in that of z − 1, and in float64.
_FORWARD = {
    "softmax": (1, 1, 0),
    "log_softmax": (1, 1, 0),
    "logsumexp": (1, 1, 0),
    "cross_entropy": (2, 1, 0),
    "partition": (0, 0, 7),
}
_BACKWARD = {"softmax": (2, 0, 2), "log_softmax": (0, 0, 1)}


def bytes_sent(
    function: Function, *, rows: int, ranks: int, dtype: object, backward: bool = False, smoothed: bool = False
) -> int:
    """Return the bytes that each rank sends in one call, or in its backward pass: (ranks − 1)·(24 + rows·numbers).

    The first call of a function in a group sends the header alone, in a message before: as many bytes. A call with
    another shape, or other parts, than the last one sends a block of that call's size first.

    >>> bytes_sent("softmax", rows=10, ranks=4, dtype="float64")
    552
    >>> bytes_sent("logsumexp", rows=10, ranks=4, dtype="float64", backward=True)
    0
    """
    numbers = (_BACKWARD if backward else _FORWARD).get(function)
    if numbers is None:
        return 0
    size = _SIZES[str(dtype).rpartition(".")[2]]
    own, sums, wide = numbers
    each = own * size + sums * max(size, 4) + (wide + int(smoothed)) * _WIDE
    return (ranks - 1) * (HEADER + rows * each)


def gathered_logits(*, rows: int, classes: int, ranks: int, dtype: object) -> int:
    """Return the bytes that each rank sends if all of them gather the logits instead: (ranks − 1)·rows·classes/ranks.

    >>> gathered_logits(rows=1, classes=8, ranks=2, dtype="bfloat16")
    8
    """
    return (ranks - 1) * rows * classes * _SIZES[str(dtype).rpartition(".")[2]] // ranks


class Traffic(NamedTuple):
    """The messages that a rank sends to other ranks, and their bytes.

    >>> Traffic(messages=2, bytes=1024).bytes
    1024
    """

    messages: int
    bytes: int


ATTENTION_HEADER = 8 * len(Header._fields)  # bytes that each rank of `attention` gives to an all_gather before it works


def attention_hops(
    keys: Sequence[int], *, causal: bool = False, window: Any = None, layout: Layout = "contiguous"
) -> int:
    """Return how often `attention` passes on each block, given how many keys each rank holds.

    Without a window, that is one less than there are ranks.

    >>> attention_hops([100, 100, 100, 100], causal=True), attention_hops([100] * 4, causal=True, window=(100, 0))
    (3, 1)
    """
    return Plan.of(layout, tuple(keys), *sides(causal, window)).hops


def attention_forward(keys: Sequence[int], key_bytes: int, hops: int) -> list[Traffic]:
    """Return what each rank sends in the forward pass: a message per hop, with the keys and values of one rank.

    Args:
        keys: How many keys each rank holds. Empty blocks are not sent.
        key_bytes: Bytes of one key and its value in all heads and batch entries: batch·kv_heads·(d + dv)·itemsize.
        hops: See `attention_hops`.

    >>> attention_forward([100, 100], key_bytes=512, hops=1)
    [Traffic(messages=1, bytes=51200), Traffic(messages=1, bytes=51200)]
    """
    # Each rank sends the blocks of the last `hops` ranks, itself included. From sums: there may be thousands of ranks.
    round_twice = [*keys, *keys]
    blocks, many = ([0, *itertools.accumulate(x)] for x in ((k > 0 for k in round_twice), round_twice))
    ends = range(len(keys) + 1, 2 * len(keys) + 1)
    return [Traffic(blocks[end] - blocks[end - hops], (many[end] - many[end - hops]) * key_bytes) for end in ends]


def attention_backward(keys: Sequence[int], key_bytes: int, hops: int, gradient_bytes: int) -> list[Traffic]:
    """Return what each rank sends in the backward pass: the blocks again, their gradients behind them, and those home.

    `gradient_bytes` is as `key_bytes`, but the gradients of float16 and bfloat16 travel as float32.

    >>> attention_backward([100, 100], key_bytes=512, hops=1, gradient_bytes=512)
    [Traffic(messages=3, bytes=153600), Traffic(messages=3, bytes=153600)]
    """
    blocks = attention_forward(keys, key_bytes, hops)
    home = hops + 1 if hops else 0
    sums = attention_forward(keys, gradient_bytes, home)
    return [Traffic(*map(sum, zip(*both, strict=True))) for both in zip(blocks, sums, strict=True)]
