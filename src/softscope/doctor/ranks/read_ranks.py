"""Which ranks of a group were read, as a record keeps it among the facts of a run."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from softscope.doctor.record import values

FACT: Final = "ranks"


@dataclasses.dataclass(frozen=True)
class ReadRanks:
    """A group's ranks, as its first one sees them."""

    size: int
    behind: dict[int, int | None]  # ranks missing in the newest reading: their last step, None if there is none
    bytes: int | None = None  # of one rank's message about one step

    def as_facts(self) -> dict[str, Any]:
        """As JSON holds it.

        >>> ReadRanks(4, {3: 120}).as_facts()
        {'size': 4, 'behind': {'3': 120}}
        """
        found: dict[str, Any] = {"size": self.size, "behind": {str(rank): step for rank, step in self.behind.items()}}
        return found if self.bytes is None else found | {"bytes": self.bytes}


def of_facts(kept: Any) -> ReadRanks | None:
    """The ranks that a record tells of; None if it does not, or not as `as_facts` writes it.

    >>> of_facts({"size": 4, "behind": {"3": 120}})
    ReadRanks(size=4, behind={3: 120}, bytes=None)
    """
    try:
        size = values.whole("size", kept["size"], 1)
        behind = {_rank(name, size): None if at is None else values.step(at) for name, at in kept["behind"].items()}
        many = kept.get("bytes")
        return ReadRanks(size, behind, None if many is None else values.whole("bytes", many))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _rank(name: str, size: int) -> int:
    if not re.fullmatch("[0-9]{1,10}", name):
        raise ValueError(f"a rank must be an integer, but got {name}")
    return values.whole("a rank", int(name), 0, size - 1)


def ranks_of(scope: Any, first_step: int = 0) -> ReadRanks | None:
    """The ranks that a probe reads, with steps that count from `first_step`; None if it has no group."""
    together = getattr(scope, "ranks", None)
    if together is None:
        return None
    found: ReadRanks = together.read()
    moved = {rank: None if step is None else step + first_step for rank, step in found.behind.items()}
    return dataclasses.replace(found, behind=moved)
