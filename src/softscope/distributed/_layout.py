"""Which positions of a sequence each rank holds, and how to cut a sequence into shards and join them again.

contiguous: rank r holds the r-th of W equal parts. zigzag: the r-th and the r-th from the end of 2W equal parts, so
that every rank has as many visible keys as any other in causal attention. Where the parts cannot be equal, the first
ones are longer by one.
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch import distributed as dist

from softscope._arguments.checks import short, whole_number
from softscope.distributed._group import process_group
from softscope.distributed._header import gathered, no_rank_waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.distributed import ProcessGroup

Layout = Literal["contiguous", "zigzag"]
LAYOUTS = ("contiguous", "zigzag")


def checked(layout: Any) -> int:
    """Return the number of a layout among LAYOUTS."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'contiguous' or 'zigzag', but got {short(layout)}; choose one of them")
    return LAYOUTS.index(layout)


def segments(layout: Layout, n: int, ranks: int, rank: int) -> list[range]:
    """Return the positions that a rank holds of n, as ranges in order; neighbouring ones are joined.

    >>> segments("zigzag", 8, 2, 0), segments("zigzag", 8, 2, 1)
    ([range(0, 2), range(6, 8)], [range(2, 6)])
    """
    if layout == "contiguous":
        return _joined([_part(n, ranks, rank)])
    return _joined([_part(n, 2 * ranks, rank), _part(n, 2 * ranks, 2 * ranks - 1 - rank)])


def segments_of_all(layout: Layout, lengths: Sequence[int]) -> list[list[range]]:
    """Return the positions that each rank holds, given how many; contiguous shards may have any lengths.

    >>> segments_of_all("contiguous", [3, 1])
    [[range(0, 3)], [range(3, 4)]]
    """
    n, ranks = sum(lengths), len(lengths)
    if layout == "contiguous":
        ends = itertools.accumulate(lengths)
        return [_joined([range(end - m, end)]) for end, m in zip(ends, lengths, strict=True)]
    found = [segments(layout, n, ranks, rank) for rank in range(ranks)]
    wanted = [sum(map(len, of_rank)) for of_rank in found]
    if wanted != list(lengths):
        raise ValueError(
            f"zigzag shards of {n} positions must have lengths {wanted}, but the ranks hold {list(lengths)}; "
            f"cut them with softscope.distributed.shard"
        )
    return found


def _part(n: int, parts: int, index: int) -> range:
    size, longer = divmod(n, parts)
    start = index * size + min(index, longer)
    return range(start, start + size + (index < longer))


def _joined(ranges: list[range]) -> list[range]:
    found: list[range] = []
    for one in filter(len, ranges):
        if found and found[-1].stop == one.start:
            found[-1] = range(found[-1].start, one.stop)
        else:
            found.append(one)
    return found


def indices(parts: Sequence[range], device: Any = None) -> Tensor:
    """Return the positions in ranges as a tensor."""
    found = [torch.arange(part.start, part.stop, device=device) for part in parts]
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64, device=device)


def positions(n: int, group: Any = None, *, layout: Layout = "contiguous") -> Tensor:
    """Return which of n positions this rank holds, in the order of its shard: for position encodings, for example.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun starts more of them
    >>> positions(3)
    tensor([0, 1, 2])
    >>> dist.destroy_process_group()
    """
    checked(layout)
    ranks = process_group(group)
    return indices(segments(layout, whole_number(n, "n", low=0), ranks.size(), dist.get_rank(ranks)))


def shard(x: Tensor, group: Any = None, *, axis: int = -2, layout: Layout = "contiguous") -> Tensor:
    """Copy this rank's shard out of a whole sequence, which every rank must hold.

    Args:
        x: The whole sequence.
        group: The ranks that share it: a ProcessGroup, a DeviceMesh of one axis, (mesh, "axis"), or None for all.
        axis: Axis of the positions.
        layout: "contiguous", or "zigzag", which balances the work of causal attention.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun starts more of them
    >>> shard(torch.ones(1, 6, 4), layout="zigzag").shape      # of two ranks, each would get 3 of the 6
    torch.Size([1, 6, 4])
    >>> dist.destroy_process_group()
    """
    return x.index_select(axis, positions(x.shape[axis], group, layout=layout).to(x.device))


def unshard(x: Tensor, group: Any = None, *, axis: int = -2, layout: Layout = "contiguous") -> Tensor:
    """Join the shards of all ranks to the whole sequence, on every rank; it carries no gradient.

    The arguments are as for `shard`. Contiguous shards may have any lengths.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun starts more of them
    >>> unshard(shard(torch.arange(4), axis=0, layout="zigzag"), axis=0, layout="zigzag")
    tensor([0, 1, 2, 3])
    >>> dist.destroy_process_group()
    """
    return joined(x, process_group(group), axis, layout)[0]


def joined(x: Tensor, ranks: ProcessGroup, axis: int, layout: Layout) -> tuple[Tensor, list[range]]:
    """The whole sequence, and which of its positions this rank holds."""
    with no_rank_waits(2, ranks):
        checked(layout)
        x = x.detach().movedim(axis, 0)
        others = zlib.crc32(f"{tuple(x.shape[1:])} {x.dtype} {layout}".encode())
    told = gathered([x.shape[0], others], ranks)
    if any(one[1] != told[0][1] for one in told):
        raise ValueError(
            "shards must have the same layout, dtype and other axes on all ranks, but they differ; "
            "pass shards of one tensor"
        )
    lengths = [one[0] for one in told]
    held = segments_of_all(layout, lengths)
    padded = x.new_zeros((max(lengths), *x.shape[1:]))
    padded[: x.shape[0]] = x
    parts = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(parts, padded, group=ranks)
    whole = x.new_empty((sum(lengths), *x.shape[1:]))
    for part, of_rank, m in zip(parts, held, lengths, strict=True):
        whole[indices(of_rank, x.device)] = part[:m]
    return whole.movedim(0, axis), held[dist.get_rank(ranks)]
