"""What the tests of traffic run on every rank: calls whose messages are counted."""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from torch import distributed as dist

from softscope import distributed as sd
from softscope._backends.torch import part_of_keys

send_and_receive, gather = dist.batch_isend_irecv, dist.all_gather
attended, gradients = part_of_keys.attended, part_of_keys.gradients


class Counted:
    """Notes every message that is posted, and every block that is computed."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.gathered: list[int] = []
        self.order: list[str] = []

    def _posted(self, operations: list[Any]) -> Any:
        self.sent += [one.tensor.nbytes for one in operations if one.op is dist.isend]
        self.order.append("post")
        return send_and_receive(operations)

    def _gathered(self, found: Any, mine: Any, group: Any = None) -> None:
        self.gathered.append(mine.nbytes)
        gather(found, mine, group=group)

    def _attended(self, *arguments: Any) -> Any:
        self.order.append("compute")
        return attended(*arguments)

    def _differentiated(self, *arguments: Any) -> Any:
        self.order.append("compute")
        return gradients(*arguments)

    def __enter__(self) -> Counted:
        self._patches = [
            mock.patch.object(dist, "batch_isend_irecv", self._posted),
            mock.patch.object(dist, "all_gather", self._gathered),
            mock.patch.object(part_of_keys, "attended", self._attended),
            mock.patch.object(part_of_keys, "gradients", self._differentiated),
        ]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()


def counted(keys: list[int], dtype: torch.dtype, options: dict[str, Any]) -> tuple[Counted, Counted]:
    """What this rank posted and computed, forward and backward."""
    n = keys[dist.get_rank()]
    q, k, v = (torch.randn(2, heads, n, d, dtype=dtype).requires_grad_() for heads, d in ((4, 8), (2, 8), (2, 6)))
    with Counted() as forward:
        out = sd.attention(q, k, v, **options)
    with Counted() as backward:
        out.sum().backward()
    return forward, backward


def messages(keys: list[int], dtype: torch.dtype, options: dict[str, Any]) -> list[Any]:
    """The messages sent and their bytes, forward and backward, and the bytes given to gathers."""
    forward, backward = counted(keys, dtype, options)
    return [(len(one.sent), sum(one.sent)) for one in (forward, backward)] + [forward.gathered, backward.gathered]


def order(options: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The order of posting and computing, forward and backward."""
    forward, backward = counted([12] * dist.get_world_size(), torch.float32, options)
    return forward.order, backward.order
