"""Messages go up a binomial tree to the group's first rank, in a thread of their own.

Training never waits for it. If a rank is not heard from within `patience`, the readings go on without it until it is
heard from again. Each rank sends one message for a step that is read, and receives at most log₂ of the number of ranks.
Who waits for a rank that may be waiting itself has more patience.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from softscope.doctor.ranks.link import Link, own_store
from softscope.doctor.ranks.message import Message, read_bytes
from softscope.doctor.record.schema import sites_as_text, sites_of_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.read.snapshot import Site

_READING, _END = 0, 1
HEADER: Final = 4  # int64: the kind, the step, the bytes of the sites, or 0 if they are known, and of the rest
MARKS: Final = 4  # int64: of the model and of the settings; a rank with another model, and one with other settings
OPENING: Final = 6  # times the patience: ranks may load their model for a while
_BACKLOG: Final = 16  # messages that may wait to be sent; further ones are dropped
_REMEMBERED: Final = 1000  # steps of which the bytes are known


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
        self.alive = True  # whether more can come
        self.late = False  # whether it was waited for in vain
        self.sites: tuple[Site, ...] = ()
        self.early: Message | None = None


class Tree:
    """The tree as seen by one rank. Merged messages come out of `ready` on the first rank."""

    def __init__(self, name: str, rank: int, ranks: int, patience: float, lost: Callable[[str], None]) -> None:
        """Connect with the ranks above and below; raises RuntimeError if one of them does not come."""
        self.rank, self.ranks, self._patience, self._lost = rank, ranks, patience, lost
        opening = OPENING * patience
        store = own_store(opening)
        self._children = [
            _Child(Link(store, f"{name}/{child}", child, True, opening), height(child, ranks))
            for child in children(rank, ranks)
        ]
        self._up = Link(store, f"{name}/{rank}", parent(rank), False, opening) if rank else None
        self._told: tuple[Site, ...] = ()
        self._until = math.inf  # when to give up, once all is over
        self._jobs: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self.ready: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.sent: dict[int, int] = {}  # bytes, by step: of the last ones
        # A daemon, so that a probe that is never left does not hold the program.
        self._thread = threading.Thread(target=self._work, name="softscope ranks", daemon=True)

    def agree(self, marks: tuple[int, int]) -> tuple[int, int]:
        """For each of two marks, a rank that has another one than rank 0; 0 if all have the same: then work begins."""
        known = np.array([*marks, 0, 0], np.int64)
        levels = OPENING + 1 + height(0, self.ranks)  # another may still wait for a rank that comes late
        for child in self._children:
            found = np.frombuffer(child.link.receive(8 * MARKS, self._patience * levels), np.int64)
            for i in (0, 1):
                known[2 + i] = known[2 + i] or found[2 + i] or (child.link.other if found[i] != known[i] else 0)
        if self._up is not None:
            self._up.send(known.tobytes(), self._patience * levels)
            known = np.frombuffer(self._up.receive(8 * MARKS, self._patience * levels), np.int64)
        for child in self._children:
            child.link.send(known.tobytes(), self._patience * levels)
        if not known[2:].any():
            self._thread.start()
        return int(known[2]), int(known[3])

    def submit(self, message: Message) -> None:
        """Merge this rank's reading of a step with those of the ranks below, and pass it on."""
        if self._jobs.qsize() >= _BACKLOG:
            self._lost("readings come faster than other ranks take them; some are left out")
        else:
            self._jobs.put(message)

    def close(self) -> None:
        """Tell the parent that nothing more comes; wait until all that was read has arrived, or is given up."""
        self._until = time.monotonic() + self._patience * (1 + height(0, self.ranks))
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            message = self._jobs.get()
            try:
                if message is None:
                    self._end()
                    return
                self._pass_on(self._with_children(message))
            except Exception as error:  # of any kind: none may end a training
                self._lost(f"{type(error).__name__}: {error}")
                if message is None:
                    return

    def _with_children(self, message: Message) -> Message:
        for child in self._children:
            found = self._from(child, message.step)
            if found is not None:
                try:
                    message = message.merged(found)
                except ValueError as error:
                    self._lost(f"rank {child.link.other} does not fit: {error}")
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
        late = 0.0 if child.late else limit
        began = time.monotonic()
        try:
            if not child.link.ask(lambda: time.monotonic() < min(began + late, self._until)):
                if not child.late:
                    self._lost(f"rank {child.link.other} is not heard from; readings are of the others")
                child.late = True
                return None
            child.late = False
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
        if self._send([header, body]):
            self.sent[message.step] = len(header) + len(body)
            if len(self.sent) > _REMEMBERED:
                del self.sent[min(self.sent)]

    def _send(self, parts: list[bytes]) -> bool:
        if self._up is None:
            return False
        try:
            if self._up.offer(parts, self._patience, lambda: time.monotonic() < self._until):
                return True
            why = "it did not ask for the last readings"
        except RuntimeError as error:
            why = _why(error)
        self._lost(f"rank {self._up.other} no longer listens ({why})")
        self._up = None
        return False

    def _end(self) -> None:
        for child in self._children:  # one that goes on for a while must not find the line cut
            child.late = False
            while child.alive and time.monotonic() < self._until and not child.late:
                self._receive(child)
        self._send([np.array([_END, 0, 0, 0], np.int64).tobytes()])


def _why(error: Exception) -> str:
    """What gloo says, without the place in its source."""
    return str(error).rpartition("] ")[2].splitlines()[0][:120] if str(error) else type(error).__name__
