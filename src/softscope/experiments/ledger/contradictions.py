"""Where the texts disagree with each other, decided by the verdicts of the claims on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from softscope.experiments.ledger.wording import Text, t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from softscope.experiments.ledger.outcome import Verdict
    from softscope.experiments.ledger.running import Entry

Winner = Literal["one", "other", "both", "neither", "each in its own case"]


@dataclass(frozen=True)
class Contradiction:
    """Two sides that cannot both be true of the same thing; `about` says what they disagree on."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    about: Text

    @property
    def ids(self) -> tuple[str, ...]:
        """Every claim on either side."""
        return self.one + self.other


@dataclass(frozen=True)
class Settled:
    """A contradiction and the verdicts that settle it."""

    contradiction: Contradiction
    verdicts: Mapping[str, Verdict]

    @property
    def winner(self) -> Winner:
        """Which side stands. A side stands fully when all its claims hold, partly when none fails outright."""
        one, other = (self._standing(side) for side in (self.contradiction.one, self.contradiction.other))
        if one == other:
            return {"full": "both", "part": "each in its own case", "none": "neither"}[one]  # type: ignore[return-value]
        order = ("none", "part", "full")
        return "one" if order.index(one) > order.index(other) else "other"

    def _standing(self, side: tuple[str, ...]) -> str:
        verdicts = {self.verdicts[name] for name in side}
        if "fails" in verdicts:
            return "none"
        return "full" if verdicts == {"holds"} else "part"


CONTRADICTIONS = (
    Contradiction(
        ("S4-01",),
        ("S2-47", "S3-44"),
        t(
            "d 变小时注意力权重更接近 one-hot（004），还是 d 变大时才更接近（002、003）",
            "whether attention gets closer to one-hot as d falls (004) or as d grows (002, 003)",
        ),
    ),
)


def settled(entries: Iterable[Entry]) -> list[Settled]:
    """The contradictions whose claims were all checked."""
    verdicts = {entry.claim.id: entry.outcome.verdict for entry in entries}
    return [
        Settled(c, {name: verdicts[name] for name in c.ids}) for c in CONTRADICTIONS if set(c.ids) <= verdicts.keys()
    ]
