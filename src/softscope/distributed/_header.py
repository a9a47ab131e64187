"""What the ranks of a group tell each other before they work: a few numbers, so that all see the same mistake."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
from torch import distributed as dist

from softscope.distributed._group import device_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch.distributed import ProcessGroup

REFUSED = -(1 << 62)  # told in place of every number by a rank that refuses its own arguments


def gathered(numbers: Sequence[int], group: ProcessGroup) -> list[list[int]]:
    """Return every rank's numbers, by rank."""
    mine = torch.tensor(numbers, dtype=torch.int64, device=device_of(group))
    found = [torch.empty_like(mine) for _ in range(group.size())]
    dist.all_gather(found, mine, group=group)
    told = [one.tolist() for one in found]
    refusing = [rank for rank, one in enumerate(told) if REFUSED in one]
    if refusing and dist.get_rank(group) not in refusing:
        raise ValueError(
            f"all ranks of a group must take part, but rank {refusing[0]} of it refused its arguments; see its error"
        )
    return told


@contextlib.contextmanager
def no_rank_waits(numbers: int, group: ProcessGroup) -> Iterator[None]:
    """Tell the other ranks if this one raises, where they are about to gather so many numbers."""
    try:
        yield
    except Exception:
        gathered([REFUSED] * numbers, group)
        raise
