"""How many messages and bytes a probe with a group sends, as formulas. Tests compare them with what is really sent.

>>> of_read_step(rank=1, ranks=1024, heads=96 * 96)
Traffic(messages=2, bytes=7114947)
>>> round(average_bytes(rank=1, ranks=1024, heads=96 * 96, steps=100_000))
144789
"""

from __future__ import annotations

from softscope.distributed.traffic import Traffic
from softscope.doctor.listen.sampling import default_schedule
from softscope.doctor.ranks.message import sizes_of
from softscope.doctor.ranks.tree import HEADER, MARKS, children

__all__ = ["average_bytes", "levels", "of_read_step", "once", "read_steps"]


def levels(ranks: int) -> int:
    """Return how many messages follow each other until the first rank has read all: ⌈log₂(ranks)⌉.

    It is also the most that one rank receives for a step.

    >>> [levels(ranks) for ranks in (1, 2, 3, 8, 1024, 16_384)]
    [0, 1, 2, 3, 10, 14]
    """
    return len(children(0, ranks))


def of_read_step(*, rank: int, ranks: int, heads: int) -> Traffic:
    """Return what a rank sends for a step that is read: a header and the sums of all heads; the first rank nothing.

    Args:
        rank: Which one.
        ranks: How many there are.
        heads: Those of all sites together, on whatever rank they are computed.

    >>> of_read_step(rank=0, ranks=2, heads=8), of_read_step(rank=1, ranks=2, heads=8)
    (Traffic(messages=0, bytes=0), Traffic(messages=2, bytes=6244))
    """
    return Traffic(2, 8 * HEADER + sum(sizes_of(heads, ranks))) if rank else Traffic(0, 0)


def once(*, rank: int, ranks: int, sites: int) -> Traffic:
    """Return what a rank sends once in a run: marks as it connects, the sites' `sites` bytes, and that it ends.

    >>> once(rank=0, ranks=4, sites=300), once(rank=1, ranks=4, sites=300)
    (Traffic(messages=2, bytes=64), Traffic(messages=2, bytes=364))
    """
    down = len(children(rank, ranks))
    up = 8 * (MARKS + HEADER) + sites if rank else 0
    return Traffic(down + (2 if rank else 0), 8 * MARKS * down + up)


def read_steps(steps: int) -> int:
    """Return how many of a run's first steps are read by default; in the long run, one in fifty.

    >>> read_steps(1000), read_steps(100_000)
    (55, 2035)
    """
    return sum(map(default_schedule, range(steps)))


def average_bytes(*, rank: int, ranks: int, heads: int, steps: int) -> float:
    """Return the bytes that a rank sends for each of so many steps, on average, with the default schedule.

    >>> average_bytes(rank=1, ranks=2, heads=8, steps=1000)
    343.42
    """
    return of_read_step(rank=rank, ranks=ranks, heads=heads).bytes * read_steps(steps) / steps
