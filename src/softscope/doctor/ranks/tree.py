"""Messages go up a binomial tree to the group's first rank, in a thread of their own.

Training never waits for it. A rank that does not answer within `patience` is given up for good, and what the others
have read still arrives. Each rank sends one message for a step that is read, and receives at most log₂ of the number of
ranks. Who waits for others that may be waiting themselves has more patience, so that one rank that is gone does not
take others with it.
"""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from softscope.doctor.ranks.link import Link
from softscope.doctor.ranks.message import Message, read_bytes
from softscope.doctor.record.schema import sites_as_text, sites_of_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.read.snapshot import Site

_READING, _END = 0, 1
HEADER: Final = 4  # int64: the kind, the step, the bytes of the sites, or 0 if they are known, and of the rest
MARKS: Final = 4  # int64: of the model and of the settings; a rank with another model, and one with other settings
OPENING: Final = 6  # times the patience: ranks may load their model for a while


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


def height(rank: int, ranks: int) -> int:
    """The most steps down the tree from this rank.

    >>> [height(rank, 8) for rank in range(8)]
    [3, 0, 1, 0, 2, 0, 1, 0]
    """
    return max((1 + height(child, ranks) for child in children(rank, ranks)), default=0)


class _Child:
    """A rank below: the sites it last spoke of, and a message that came too early."""

    def __init__(self, link: Link, height: int) -> None:
        self.link, self.height = link, height
        self.alive = True
        self.sites: tuple[Site, ...] = ()
        self.early: Message | None = None


class Tree:
    """The tree as seen by one rank. Merged messages come out of `ready` on the first rank."""

    def __init__(self, name: str, rank: int, ranks: int, patience: float, lost: Callable[[str], None]) -> None:
        """Connect with the ranks above and below; raises RuntimeError if one of them does not come."""
        self.rank, self.ranks, self._patience, self._lost = rank, ranks, patience, lost
        opening = OPENING * patience
        self._children = [
            _Child(Link(f"{name}/{child}", child, True, opening), height(child, ranks))
            for child in children(rank, ranks)
        ]
        self._up = Link(f"{name}/{rank}", parent(rank), False, opening) if rank else None
        self._told: tuple[Site, ...] = ()
        self._closing = False
        self.ready: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.sent: dict[int, int] = {}  # bytes, by step
        # No daemon: gloo ends a process that exits while one of its operations is waited for. An executor's thread
        # ends with the program, even if nobody closes it.
        self._thread = ThreadPoolExecutor(1, "softscope-ranks")

    def agree(self, marks: tuple[int, int]) -> tuple[int, int]:
        """For each of two marks, a rank that has another one than rank 0; 0 if all have the same."""
        known = np.array([*marks, 0, 0], np.int64)
        levels = 1 + height(0, self.ranks)
        for child in self._children:
            found = np.frombuffer(child.link.receive(8 * MARKS, self._patience * levels), np.int64)
            for i in (0, 1):
                known[2 + i] = known[2 + i] or found[2 + i] or (child.link.other if found[i] != known[i] else 0)
        if self._up is not None:
            self._up.send(known.tobytes(), self._patience * levels)
            known = np.frombuffer(self._up.receive(8 * MARKS, self._patience * levels), np.int64)
        for child in self._children:
            child.link.send(known.tobytes(), self._patience * levels)
        return int(known[2]), int(known[3])

    def submit(self, message: Message) -> None:
        """Merge this rank's reading of a step with those of the ranks below, and pass it on."""
        self._thread.submit(self._step, message)

    def close(self) -> None:
        """Tell the parent that nothing more comes; wait until all that was read has arrived, or is given up."""
        self._closing = True
        self._thread.submit(self._end)
        self._thread.shutdown()

    def _step(self, message: Message) -> None:
        try:
            self._pass_on(self._with_children(message))
        except Exception as error:  # of any kind: none may end a training
            self._lost(f"{type(error).__name__}: {error}")

    def _with_children(self, message: Message) -> Message:
        for child in self._children:
            found = self._from(child, message.step)
            if found is not None:
                message = message.merged(found)
        return message

    def _from(self, child: _Child, step: int) -> Message | None:
        """The child's message of this step; None if it has none."""
        while child.alive or child.early is not None:
            found, child.early = child.early, None
            if found is None:
                found = self._receive(child)
            if found is None or found.step == step:
                return found
            if found.step > step:  # the child has skipped this step
                child.early = found
                return None
        return None

    def _receive(self, child: _Child) -> Message | None:
        limit = self._patience * (1 + child.height)
        try:
            header = np.frombuffer(child.link.receive(8 * HEADER, limit), np.int64)
            kind, step, of_sites, rest = (int(x) for x in header)
            if kind == _END:
                child.alive = False
                return None
            data = child.link.receive(of_sites + rest, limit)
            if of_sites:
                child.sites = sites_of_text(data[:of_sites].decode())
            return read_bytes(data[of_sites:], step, child.sites, self.ranks)
        except (RuntimeError, ValueError) as error:
            child.alive = False
            self._lost(f"rank {child.link.other} is no longer read ({_why(error)})")
            return None

    def _pass_on(self, message: Message) -> None:
        if self.rank == 0:
            self.ready.put(message)
            return
        sites = b"" if message.sites == self._told else sites_as_text(message.sites).encode()
        self._told = message.sites
        body = sites + message.to_bytes()
        header = np.array([_READING, message.step, len(sites), len(body) - len(sites)], np.int64).tobytes()
        if self._send(header) and self._send(body):
            self.sent[message.step] = len(header) + len(body)

    def _send(self, data: bytes) -> bool:
        if self._up is None:
            return False
        try:
            # The parent may be waiting for others, and for its own parent; at the end, one round of that is enough.
            rounds = 1 + height(0, self.ranks)
            self._up.send(data, self._patience * (rounds if self._closing else rounds**2))
        except RuntimeError as error:
            self._lost(f"rank {self._up.other} no longer listens ({_why(error)})")
            self._up = None
            return False
        return True

    def _end(self) -> None:
        until = time.monotonic() + self._patience
        for child in self._children:  # one that goes on for a while must not find the line cut
            while child.alive and time.monotonic() < until:
                self._receive(child)
        self._send(np.array([_END, 0, 0, 0], np.int64).tobytes())


def _why(error: Exception) -> str:
    """What gloo says, without the place in its source."""
    return str(error).rpartition("] ")[2].splitlines()[0][:120] if str(error) else type(error).__name__
