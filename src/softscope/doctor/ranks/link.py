"""A connection between two ranks: a gloo process group of their own.

Of their own because gloo closes all connections of a group once one was waited for in vain. And PyTorch does not know
of this group: whatever happens to it, the groups that training uses are as they were.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import torch
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore


class Link:
    """One end of a connection. All methods raise RuntimeError if the other end is gone, or does not answer in time."""

    def __init__(self, name: str, other: int, first: bool, timeout: float) -> None:
        """Wait for the other end. `name` is the connection's, `other` the other's rank; one of both is `first`."""
        self.other = other
        store = PrefixStore(name, dist.distributed_c10d._get_default_store())
        limit = dt.timedelta(seconds=timeout)
        store.set_timeout(limit)
        self._group: Any = dist.ProcessGroupGloo(store, 0 if first else 1, 2, limit)
        self._to = 1 if first else 0

    def send(self, data: bytes, timeout: float) -> None:
        """Send bytes; returns when the other end has them."""
        self._group.send([torch.frombuffer(bytearray(data), dtype=torch.uint8)], self._to, 0).wait(_seconds(timeout))

    def receive(self, many: int, timeout: float) -> bytes:
        """So many bytes that the other end sends."""
        into = torch.empty(many, dtype=torch.uint8)
        self._group.recv([into], self._to, 0).wait(_seconds(timeout))
        return into.numpy().tobytes()


def _seconds(timeout: float) -> dt.timedelta:
    return dt.timedelta(seconds=timeout)
