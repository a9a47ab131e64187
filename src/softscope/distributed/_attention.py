"""Attention whose keys and values lie in shards on several ranks: they travel, and queries stay."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Literal, NamedTuple, overload

import torch
from torch import Tensor
from torch import distributed as dist

from softscope._arguments.arrays import dtype_name, is_tensor, unchanged
from softscope._arguments.attention import Call, prepare
from softscope._arguments.checks import flag
from softscope._backends.torch import engine_attention
from softscope._backends.torch.engine_memory import DTYPES, flows
from softscope._partition import Partition
from softscope.distributed._group import device_of, process_group
from softscope.distributed._header import gathered, no_rank_waits
from softscope.distributed._layout import LAYOUTS, Layout, checked
from softscope.distributed._ring import Plan
from softscope.distributed._ring_attention import How, RingAttention

_NO_LIMIT = -1  # of a window's side


class Header(NamedTuple):
    """What the ranks tell each other before each call. All but the number of keys must be the same on all of them."""

    dtype: int
    heads: int
    kv_heads: int
    d: int
    dv: int
    batch: int  # a checksum of the axes before the heads
    layout: int
    left: int
    right: int
    scale: int  # the bits of a float
    softcap: int
    gradient: int  # whether there will be a backward pass
    keys: int


_NAMES = {
    "heads": "q's heads",
    "kv_heads": "k's heads",
    "d": "the last axis of q and k",
    "dv": "the last axis of v",
    "batch": "the axes before the heads",
    "left": "the window's left side",
    "right": "the window's right side",
    "gradient": "whether q, k or v needs a gradient",
}


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group: Any = None,
    scale: Any = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    mask: None = None,
    softcap: float | None = None,
    sink: Any = None,
    layout: Layout = "contiguous",
    return_partition: Literal[False] = False,
) -> Tensor: ...
@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group: Any = None,
    scale: Any = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    mask: None = None,
    softcap: float | None = None,
    sink: Any = None,
    layout: Layout = "contiguous",
    return_partition: Literal[True],
) -> tuple[Tensor, Partition]: ...
@torch.compiler.disable  # type: ignore[untyped-decorator]  # messages cannot be traced
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group: Any = None,
    scale: Any = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    mask: None = None,
    softcap: float | None = None,
    sink: Any = None,
    layout: Layout = "contiguous",
    return_partition: bool = False,
) -> Tensor | tuple[Tensor, Partition]:
    """Compute `softscope.attention` of a sequence whose positions are shared out among the ranks of a group.

    Each rank passes its shard, and gets the output of its own queries over the keys of all ranks. Keys and values
    travel around the ring of ranks while each rank computes, so no rank ever holds more than three blocks of them.
    Every rank of the group must call this, and must run the backward pass if there is one. The gradients of `scale` and
    `sink` are those of this rank's queries: add them up over the ranks, as for any parameter that all ranks hold.

    Args:
        q: This rank's queries, (…, heads, n, d).
        k: This rank's keys, (…, kv_heads, n, d).
        v: This rank's values, (…, kv_heads, n, dv).
        group: The ranks: a ProcessGroup, a DeviceMesh of one axis, (mesh, "axis"), or None for all.
        scale: A number, or one number per head. The default is 1/√d.
        causal: A query sees no key at a later position of the whole sequence.
        window: (left, right), in positions of the whole sequence, as for `softscope.attention`.
        mask: Not supported.
        softcap: Cap c; the scaled logits s become c·tanh(s/c).
        sink: One logit per head, neither scaled nor capped.
        layout: Which positions the ranks hold: "contiguous", one after the other, of any lengths; or "zigzag", as
            `shard` cuts them, which balances the work of causal attention.
        return_partition: Also return the `Partition` of every row over the keys of all ranks, excluding the sink.

    Returns:
        The output, (…, heads, n, dv); with `return_partition`, the pair (output, partition).

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun starts more of them
    >>> x = torch.ones(1, 2, 3, 4)                     # this rank's 3 positions, in 2 heads
    >>> attention(x, x, x, causal=True, layout="zigzag").shape
    torch.Size([1, 2, 3, 4])
    >>> dist.destroy_process_group()
    """
    ranks = process_group(group)
    with no_rank_waits(len(Header._fields), ranks):
        statistics = flag(return_partition, "return_partition")
        _refuse_others(q, k, v, mask, ranks)
        call = prepare(q, k, v, scale=scale, causal=causal, window=window, softcap=softcap, sink=sink)
        header = _header(call, layout)
    headers = [Header(*numbers) for numbers in gathered(header, ranks)]
    _check_all_alike(headers)
    options = call.options
    plan = Plan.of(layout, tuple(one.keys for one in headers), options.left, options.right)
    out, numbers = around_the_ring(call, How(ranks, dist.get_rank(ranks), plan, options.softcap, statistics), layout)
    return (out, Partition.of_numbers(numbers, 1.0, unchanged)) if statistics else out


def around_the_ring(call: Call, how: How, layout: Layout) -> tuple[Tensor, Tensor]:
    """The output, and the numbers of the partition. The doctor listens here."""
    del layout  # it wants to know
    per_head = engine_attention.per_head(call, call.options.scale)
    of_sink = None if call.options.sink is None else engine_attention.per_head(call, call.options.sink)
    out, numbers = RingAttention.apply(call.q, call.k, call.v, per_head, of_sink, how)  # type: ignore[no-untyped-call]
    return (out[0], numbers[0]) if call.single else (out, numbers)


def _refuse_others(q: Any, k: Any, v: Any, mask: Any, group: Any) -> None:
    """Refuse what only attention in one process takes."""
    device = device_of(group).type
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not is_tensor(x):
            raise TypeError(f"{name} must be a torch tensor, but got {type(x).__name__}; convert this rank's shard")
        if hasattr(x, "to_local"):  # a DTensor
            raise TypeError(f"{name} must be this rank's shard, but got a DTensor; pass {name}.to_local()")
        if x.device.type != device:
            raise ValueError(
                f"{name} must be on a device that the group sends from, {device}, but is on {x.device}; move it there"
            )
    if mask is not None:
        raise ValueError(
            "mask is not supported where keys are sharded, but got one; use causal or window, or gather the keys with "
            "softscope.distributed.unshard and call softscope.attention"
        )


def _header(call: Call, layout: Any) -> Header:
    q, k, v, options = call.q, call.k, call.v, call.options
    assert v is not None
    limited = options.left is not None or options.right is not None
    if limited and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"q and k must hold the same positions for causal or window, but have {q.shape[-2]} and {k.shape[-2]}; "
            f"cut both in the same way"
        )
    batch = repr([tuple(x.shape[:-3]) for x in (q, k, v)])
    return Header(
        dtype=DTYPES[q.dtype],
        heads=q.shape[-3],
        kv_heads=k.shape[-3],
        d=q.shape[-1],
        dv=v.shape[-1],
        batch=zlib.crc32(batch.encode()),
        layout=checked(layout),
        left=_NO_LIMIT if options.left is None else options.left,
        right=_NO_LIMIT if options.right is None else options.right,
        scale=_bits(options.scale) if isinstance(options.scale, float) else 0,
        softcap=_bits(options.softcap or 0.0),
        gradient=int(any(map(flows, (q, k, v, options.scale, options.sink)))),
        keys=k.shape[-2],
    )


def _bits(number: float) -> int:
    return int(struct.unpack("q", struct.pack("d", number))[0])


def _shown(name: str, value: int) -> str:
    if name == "dtype":
        return dtype_name(torch.empty(0, dtype=list(DTYPES)[value]))
    if name == "layout":
        return LAYOUTS[value]
    if name in ("scale", "softcap"):
        return str(struct.unpack("d", struct.pack("q", value))[0])
    if name == "gradient":
        return str(bool(value))
    return "no limit" if value == _NO_LIMIT else str(value)


def _check_all_alike(headers: list[Header]) -> None:
    """Refuse, on every rank alike, what differs between the ranks."""
    first = headers[0]
    for rank, other in enumerate(headers):
        for name in Header._fields[:-1]:
            mine, theirs = getattr(first, name), getattr(other, name)
            if mine == theirs:
                continue
            values = "" if name == "batch" else f": {_shown(name, mine)} and {_shown(name, theirs)}"
            raise ValueError(
                f"{_NAMES.get(name, name)} must be the same on all ranks of the group, but ranks 0 and {rank} differ"
                f"{values}; pass shards of the same call"
            )
