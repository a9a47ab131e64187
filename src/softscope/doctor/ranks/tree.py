"""Messages go up a binomial tree to the group's first rank, in a thread and a process group of their own.

Training never waits for it. A rank that does not answer within `patience` is given up for good: gloo closes a
connection that was waited for in vain, and what the others have read still arrives. Each rank sends one message for a
step that is read, and receives at most log₂ of the number of ranks.
"""

from __future__ import annotations

import datetime as dt
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import distributed as dist

from softscope.doctor.ranks.message import Message, read_bytes, sites_as_text, sites_of_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.distributed import ProcessGroup

    from softscope.doctor.read.snapshot import Site

_READING, _END = 0, 1
_HEADER: Final = 4  # int64: the kind, the step, the bytes of the sites, or 0 if they are known, and of the rest


def parent(rank: int) -> int:
    """The rank that this one sends to.

    >>> [parent(rank) for rank in range(1, 8)]
    [0, 0, 2, 0, 4, 4, 6]
    """
    return rank & (rank - 1)


def children(rank: int, ranks: int) -> list[int]:
    """The ranks that send to this one, those with the smallest subtree first.

    >>> children(0, 8), children(4, 8), children(4, 6), children(3, 8)
    ([1, 2, 4], [5, 6], [5], [])
    """
    found, step = [], 1
    while rank + step < ranks and not rank & step:
        found.append(rank + step)
        step *= 2
    return found


class _Link:
    """The connection to a child: the sites it last spoke of, and a message that came too early."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.alive = True
        self.sites: tuple[Site, ...] = ()
        self.early: Message | None = None


class Tree:
    """The tree as seen by one rank. Merged messages come out of `ready` on the first rank."""

    def __init__(self, group: ProcessGroup, patience: float, lost: Callable[[str], None]) -> None:
        self._group, self._limit, self._lost = group, dt.timedelta(seconds=patience), lost
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self._links = [_Link(rank) for rank in children(self.rank, self.ranks)]
        self._told: tuple[Site, ...] = ()
        self._up = self.rank > 0  # whether the parent still listens
        self.ready: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.sent: dict[int, int] = {}  # bytes, by step
        # No daemon: gloo ends a process that exits while one of its operations is waited for. An executor's thread
        # ends with the program, even if nobody closes it.
        self._thread = ThreadPoolExecutor(1, "softscope-ranks")

    def submit(self, message: Message) -> None:
        """Merge this rank's reading of a step with those of the ranks below, and pass it on."""
        self._thread.submit(self._step, message)

    def close(self) -> None:
        """Tell the parent that nothing more comes; wait until all that was read has arrived, or is given up."""
        self._thread.submit(self._end)
        self._thread.shutdown()

    def _step(self, message: Message) -> None:
        try:
            self._pass_on(self._with_children(message))
        except Exception as error:  # of any kind: none may end a training
            self._lost(f"{type(error).__name__}: {error}")

    def _with_children(self, message: Message) -> Message:
        for link in self._links:
            found = self._from(link, message.step)
            if found is not None:
                message = message.merged(found)
        return message

    def _from(self, link: _Link, step: int) -> Message | None:
        """The child's message of this step; None if it has none."""
        while link.alive or link.early is not None:
            found, link.early = link.early, None
            if found is None:
                found = self._receive(link)
            if found is None or found.step == step:
                return found
            if found.step > step:  # the child has skipped this step
                link.early = found
                return None
        return None

    def _receive(self, link: _Link) -> Message | None:
        try:
            kind, step, of_sites, rest = (int(x) for x in np.frombuffer(self._bytes(link, 8 * _HEADER), np.int64))
            if kind == _END:
                link.alive = False
                return None
            data = self._bytes(link, of_sites + rest)
            if of_sites:
                link.sites = sites_of_text(data[:of_sites])
            return read_bytes(data[of_sites:], step, link.sites, self.ranks)
        except (RuntimeError, ValueError) as error:
            link.alive = False
            self._lost(f"rank {link.rank} is no longer read ({_first_line(error)})")
            return None

    def _bytes(self, link: _Link, many: int) -> bytes:
        into = torch.empty(many, dtype=torch.uint8)
        work = dist.irecv(into, group=self._group, group_src=link.rank)
        assert work is not None
        work.wait(self._limit)
        return into.numpy().tobytes()

    def _pass_on(self, message: Message) -> None:
        if self.rank == 0:
            self.ready.put(message)
            return
        sites = b"" if message.sites == self._told else sites_as_text(message.sites)
        self._told = message.sites
        body = sites + message.to_bytes()
        header = np.array([_READING, message.step, len(sites), len(body) - len(sites)], np.int64).tobytes()
        self._send(header)
        self._send(body)
        if self._up:
            self.sent[message.step] = len(header) + len(body)

    def _send(self, data: bytes) -> None:
        if not self._up:
            return
        try:
            work = dist.isend(torch.frombuffer(bytearray(data), dtype=torch.uint8), group=self._group,
                              group_dst=parent(self.rank))  # fmt: skip
            assert work is not None
            work.wait(self._limit)
        except RuntimeError as error:
            self._up = False
            self._lost(f"rank {parent(self.rank)} no longer listens ({_first_line(error)})")

    def _end(self) -> None:
        until = time.monotonic() + self._limit.total_seconds()
        for link in self._links:  # a child that goes on for a while must not find the line cut
            while link.alive and time.monotonic() < until:
                self._receive(link)
        self._send(np.array([_END, 0, 0, 0], np.int64).tobytes())


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rpartition("] ")[2][:120] if str(error) else type(error).__name__
