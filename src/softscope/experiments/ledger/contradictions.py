"""Where the texts contradict each other; the verdicts on both sides' claims decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from softscope.experiments.ledger.outcome import Verdict
    from softscope.experiments.ledger.running import Entry

Winner = Literal["one", "other", "both", "neither", "each in its own case"]


@dataclass(frozen=True)
class Contradiction:
    """Two sides that cannot both be true; `about` says what they disagree on."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    about: Text

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all claims on both sides."""
        return self.one + self.other


@dataclass(frozen=True)
class Settled:
    """A contradiction with the verdicts that settle it."""

    contradiction: Contradiction
    verdicts: Mapping[str, Verdict]

    @property
    def winner(self) -> Winner:
        """Say which side stands: fully if all its claims hold, partly if none fails outright."""
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
        Text(
            zh="注意力是随 d 变小而接近 one-hot（004 的标题），还是不缩放时随 d 变大而接近（002、003）",
            en="Whether attention nears one-hot as d falls (title of 004) or, without scaling, as d grows (002, 003)",
        ),
    ),
    Contradiction(
        ("S4-01",),
        ("S2-48", "S2-56"),
        Text(
            zh="缩放之后，注意力随 d 变小而变尖锐（004），还是与 d 无关（002）",
            en="Whether scaled attention sharpens as d falls (004) or does not depend on d (002)",
        ),
    ),
    Contradiction(
        ("S0-06", "S0-31"),
        ("S3-14", "S3-15"),
        Text(
            zh="数值整体变大会使 softmax 变尖锐（000），还是平移不改变结果（003）",
            en="Whether larger values alone make softmax sharp (000) or a common shift changes nothing (003)",
        ),
    ),
    Contradiction(
        ("S4-10",),
        ("S2-54", "S3-47"),
        Text(
            zh="送入 softmax 的一行有 d 项（004），还是每个键一项（002、003）",
            en="Whether a row that goes into softmax has d entries (004) or one per key (002, 003)",
        ),
    ),
    Contradiction(
        ("S0-01",),
        ("S1-18",),
        Text(
            zh="尖锐的 softmax 不再可微（000），还是 softmax 处处可微（001）",
            en="Whether a sharp softmax stops being differentiable (000) or softmax is differentiable everywhere (001)",
        ),
    ),
    Contradiction(
        ("S1-19", "S1-28"),
        ("S0-16", "S2-13", "S4-14"),
        Text(
            zh="softmax 的梯度稳定而友好（001），还是在接近 one-hot 时消失（000、002、004）",
            en="Whether softmax's gradient is stable and friendly (001) or vanishes near one-hot (000, 002, 004)",
        ),
    ),
    Contradiction(
        ("S1-32",),
        ("S3-51",),
        Text(
            zh="不用 softmax 就没有概率意义（001），还是 sparsemax 也给出概率分布（003）",
            en="Whether only softmax has a probabilistic meaning (001) or sparsemax gives a distribution too (003)",
        ),
    ),
    Contradiction(
        ("S3-40",),
        ("S0-20",),
        Text(
            zh="除以 √d 是 softmax 的作用（003），还是 softmax 之前的一步（000）",
            en="Whether dividing by √d is one of softmax's roles (003) or a step before it (000)",
        ),
    ),
)


def settled(entries: Iterable[Entry]) -> list[Settled]:
    """Return the contradictions whose claims have all been checked."""
    verdicts = {entry.claim.id: entry.outcome.verdict for entry in entries}
    return [
        Settled(c, {name: verdicts[name] for name in c.ids}) for c in CONTRADICTIONS if set(c.ids) <= verdicts.keys()
    ]
