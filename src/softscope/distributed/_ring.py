"""How the blocks of keys travel: around the ring of ranks, each rank passing on the block that it works on.

After h hops, rank r holds the block of rank r − h. Every rank knows which positions all others hold, so all of them
find the same number of hops after which nobody needs a block any more: with a window, that may be one or two.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from torch import distributed as dist

from softscope.distributed._layout import Layout, segments_of_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from torch.distributed import ProcessGroup

KEYS, GRADIENTS = 1, 2  # tags of messages


@dataclasses.dataclass(frozen=True)
class Plan:
    """Who holds which positions, and who sees whom.

    Attributes:
        held: The positions of each rank, as ranges in order.
        left: A query sees keys from its position − left on; None means unlimited.
        right: A query sees keys up to its position + right; None means unlimited.
    """

    held: list[list[range]]
    left: int | None
    right: int | None

    @classmethod
    @functools.lru_cache(maxsize=256)  # a model's layers make the same calls, and looking at all pairs takes time
    def of(cls, layout: Layout, keys: tuple[int, ...], left: int | None, right: int | None) -> Plan:
        """Make the plan for ranks that hold so many keys each."""
        return cls(segments_of_all(layout, keys), left, right)

    @functools.cached_property
    def hops(self) -> int:
        """How often a block is passed on before nobody needs it."""
        ranks = len(self.held)
        if self.left is None or self.right is None:
            return ranks - 1
        pairs = ((reader, source) for reader in range(ranks) for source in range(ranks))
        return max((reader - source) % ranks if self.sees(reader, source) else 0 for reader, source in pairs)

    def sees(self, reader: int, source: int) -> bool:
        """Tell whether any query of one rank sees any key of another."""
        return any(self._rows(reader, keys) for keys in self.held[source])

    def parts(self, reader: int, source: int, queries: int) -> Iterator[tuple[slice, slice, int]]:
        """Yield which rows of a rank see which keys of another, and the position of the first of those keys.

        Hidden parts are left out. If every query sees every key, there is one part, with rows of any number.
        """
        if self.left is None and self.right is None:
            many = sum(map(len, self.held[source]))
            if queries and many:
                yield slice(0, queries), slice(0, many), 0
            return
        first = 0
        for keys in self.held[source]:
            rows = self._rows(reader, keys)
            if rows:
                yield slice(rows.start, rows.stop), slice(first, first + len(keys)), keys.start
            first += len(keys)

    def _rows(self, reader: int, keys: range) -> range:
        """Return the rows of a rank from the first to the last that see any of these keys."""
        lowest = -math.inf if self.right is None else keys.start - self.right
        highest = math.inf if self.left is None else keys[-1] + self.left
        found, first = [], 0
        for of_queries in self.held[reader]:
            begin, end = max(of_queries.start, lowest), min(of_queries[-1], highest)
            if begin <= end:
                found += [first + int(begin) - of_queries.start, first + int(end) - of_queries.start]
            first += len(of_queries)
        return range(found[0], found[-1] + 1) if found else range(0)


class Passing:
    """A block on its way to one rank, while another comes from a second one."""

    def __init__(self, block: Tensor, to: int, size: int, source: int, group: ProcessGroup, tag: int) -> None:
        self._incoming = block.new_empty(size)
        self._sent = block  # must live until it has left
        sending = [dist.P2POp(dist.isend, block, group=group, tag=tag, group_peer=to)] if block.numel() else []
        coming = [dist.P2POp(dist.irecv, self._incoming, group=group, tag=tag, group_peer=source)] if size else []
        self._work = dist.batch_isend_irecv(sending + coming) if sending or coming else []

    def arrived(self) -> Tensor:
        """Wait for both, and return the block that came."""
        for work in self._work:
            work.wait()
        return self._incoming
