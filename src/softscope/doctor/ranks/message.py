"""One rank's part of a step, or of several ranks merged: what goes up the tree, as bytes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import numpy as np

from softscope.doctor.ranks import fields
from softscope.doctor.read.snapshot import Array, Site

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclasses.dataclass(eq=False)
class Message:
    """What the ranks in `seen` have read of a step. Its size depends on the sites and the group alone."""

    step: int
    sites: tuple[Site, ...]  # with the heads of all ranks
    sums: Array  # (heads of all sites, fields.NUMBERS)
    given: Array  # which of fields.NAMES any rank has
    seen: Array  # which ranks of the group
    loss: float = 0.0  # summed over the ranks that have one
    losses: int = 0
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Everything but the sites, which the receiver has."""
        numbers = np.array([self.loss, self.losses, self.seconds], np.float64)
        return b"".join(x.tobytes() for x in (numbers, np.packbits(self.given), np.packbits(self.seen), self.sums))

    def merged(self, other: Message) -> Message:
        """The same of both. Ranks may have found sites in another order, or not all of them."""
        one = self
        if one.sites != other.sites:
            sites = united(one.sites, other.sites)
            one, other = one.over(sites), other.over(sites)
        return Message(
            self.step, one.sites, fields.merged(one.sums, other.sums), one.given | other.given, one.seen | other.seen,
            one.loss + other.loss, one.losses + other.losses, max(one.seconds, other.seconds),
        )  # fmt: skip

    def over(self, sites: tuple[Site, ...]) -> Message:
        """The same for these sites, which are its own and maybe more, in any order."""
        if sites == self.sites:
            return self
        sums = fields.nothing(sum(site.heads for site in sites))
        to = first_heads(sites)
        at = 0
        for site in self.sites:
            sums[to[site.name] : to[site.name] + site.heads] = self.sums[at : at + site.heads]
            at += site.heads
        return dataclasses.replace(self, sites=sites, sums=sums)


def sizes_of(heads: int, ranks: int) -> list[int]:
    """The bytes of a message's parts: three numbers, what is given, who is seen, and the sums."""
    return [24, -(-len(fields.NAMES) // 8), -(-ranks // 8), 4 * fields.NUMBERS * heads]


def read_bytes(data: bytes, step: int, sites: tuple[Site, ...], ranks: int) -> Message:
    """The message that these bytes are. Raises ValueError if they are not of these sites and this group."""
    sizes = sizes_of(sum(site.heads for site in sites), ranks)
    if len(data) != sum(sizes):
        raise ValueError(f"a message must have {sum(sizes)} bytes, but got {len(data)}")
    cuts = np.cumsum([0, *sizes])
    numbers, given, seen, sums = (data[a:b] for a, b in itertools.pairwise(cuts))
    loss, losses, seconds = np.frombuffer(numbers, np.float64)

    def flags(packed: bytes, many: int) -> Array:
        return np.unpackbits(np.frombuffer(packed, np.uint8), count=many).astype(bool)

    matrix = np.frombuffer(sums, np.float32).reshape(-1, fields.NUMBERS)
    return Message(
        step, sites, matrix, flags(given, len(fields.NAMES)), flags(seen, ranks), float(loss), int(losses), seconds
    )


def united(one: Sequence[Site], other: Sequence[Site]) -> tuple[Site, ...]:
    """The sites of both, each once, in the order in which they were found."""
    known = {site.name: site for site in one}
    for site in other:
        mine = known.setdefault(site.name, site)
        if mine.heads != site.heads:
            raise ValueError(f"{site.name} has {mine.heads} heads on one rank and {site.heads} on another")
    return tuple(known.values())


def first_heads(sites: Sequence[Site]) -> dict[str, int]:
    """By site, the number of heads before its first."""
    found, at = {}, 0
    for site in sites:
        found[site.name] = at
        at += site.heads
    return found
