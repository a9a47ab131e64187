"""What each rank sends in a call, as formulas; the tests count the messages of real calls and compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from softscope._arguments.attention import sides
from softscope.distributed._attention import Header
from softscope.distributed._ring import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.distributed._layout import Layout


class Traffic(NamedTuple):
    """The messages that a rank sends to other ranks, and their bytes."""

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
    return [_sent([keys[rank - hop] for hop in range(hops)], key_bytes) for rank in range(len(keys))]


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


def _sent(blocks: list[int], key_bytes: int) -> Traffic:
    return Traffic(sum(many > 0 for many in blocks), sum(blocks) * key_bytes)
