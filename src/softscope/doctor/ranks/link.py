"""A connection between two ranks: a gloo process group of their own, and a store where they tell that they are ready.

Of their own because gloo closes all connections of a group once one was waited for in vain. And PyTorch does not know
of this group: whatever happens to it, the groups that training uses are as they were. Neither end waits inside gloo for
the other to come: a message is announced in the store first, asked for there, and sent only then. So a rank that is
late costs nothing but its part of a reading.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE, _LONGEST = 0.002, 0.5  # seconds between two looks into the store: the longer it takes, the longer they are


class Link:
    """One end of a connection. All methods raise RuntimeError if the other end is gone."""

    def __init__(self, store: Any, name: str, other: int, first: bool, timeout: float) -> None:
        """Wait for the other end. `name` is the connection's, `other` the other's rank; one of both is `first`."""
        self.other = other
        self._store: Any = PrefixStore(name, store)
        limit = dt.timedelta(seconds=timeout)
        self._group: Any = dist.ProcessGroupGloo(self._store, 0 if first else 1, 2, limit)
        self._to = 1 if first else 0
        self._number = 0  # of messages

    def offer(self, parts: list[bytes], timeout: float, wanted: Callable[[], bool]) -> bool:
        """Announce a message and send it once the other end asks for it; False if `wanted` ends before it does."""
        number = self._number
        self._store.set(f"ready/{number}", "")
        if not self._appears(f"go/{number}", wanted):
            return False
        self._number += 1
        self._store.delete_key(f"go/{number}")
        for data in parts:
            self.send(data, timeout)
        return True

    def ask(self, wanted: Callable[[], bool]) -> bool:
        """Ask for the next message, to receive it then; False if none is announced before `wanted` ends."""
        if not self._appears(f"ready/{self._number}", wanted):
            return False
        self._store.delete_key(f"ready/{self._number}")
        self._store.set(f"go/{self._number}", "")
        self._number += 1
        return True

    def send(self, data: bytes, timeout: float) -> None:
        """Send bytes; returns when the other end has them."""
        self._group.send([torch.frombuffer(bytearray(data), dtype=torch.uint8)], self._to, 0).wait(_seconds(timeout))

    def receive(self, many: int, timeout: float) -> bytes:
        """So many bytes that the other end sends."""
        into = torch.empty(many, dtype=torch.uint8)
        self._group.recv([into], self._to, 0).wait(_seconds(timeout))
        return into.numpy().tobytes()

    def _appears(self, key: str, wanted: Callable[[], bool]) -> bool:
        """Whether the key appears in the store; looks at least once, and again while it is wanted."""
        began = time.monotonic()
        while not self._store.check([key]):
            if not wanted():
                return False
            time.sleep(min(max(_PAUSE, 0.05 * (time.monotonic() - began)), _LONGEST))
        return True


def own_store(timeout: float) -> Any:
    """A connection of our own to the store of the default group: training's keeps its timeout, and is never busy."""
    default: Any = dist.distributed_c10d._get_default_store()
    store = default.clone()
    store.set_timeout(_seconds(timeout))
    return store


def _seconds(timeout: float) -> dt.timedelta:
    return dt.timedelta(seconds=timeout)
