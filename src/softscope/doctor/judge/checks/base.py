"""The base of every check, and the judgements it can give on a head."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from softscope._text import Text
from softscope.doctor.judge.history_view import Head, HistoryView

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.judge.thresholds import Threshold
    from softscope.doctor.read.snapshot import History

Severity = Literal["finding", "tip", "informative"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
Kind = Literal["finding", "tip", "informative", "passed", "not-applicable", "unseen", "muted"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_NAMES: dict[Kind, Text] = {
    "finding": Text(zh="问题", en="findings"),
    "tip": Text(zh="建议", en="tips"),
    "informative": Text(zh="说明", en="notes"),
    "passed": Text(zh="通过", en="passed"),
    "not-applicable": Text(zh="不适用", en="not applicable"),
    "unseen": Text(zh="未见", en="unseen"),
    "muted": Text(zh="静音", en="muted"),
}


class Fired(NamedTuple):
    """The check fired: the observation, its figures, and a severity if it is lower than the check's own."""

    says: Text
    values: dict[str, float]
    severity: Severity | None = None


class Absent(NamedTuple):
    """The check does not judge: the question does not arise here, or a reading it needs was not taken."""

    kind: Literal["not-applicable", "unseen"]
    why: Text


Judgement = Fired | Absent | None  # None means passed


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """The result of one check: for one head if it fired, otherwise for all heads with the same answer."""

    code: str
    kind: Kind
    heads: tuple[Head, ...]
    says: Text
    values: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of judgements in this result."""
        return max(1, len(self.heads))


PASSED = Text(zh="通过", en="passed")


@dataclasses.dataclass(frozen=True)
class Check:
    """One question about a history; `judge` answers it for one head or for a whole site."""

    code: str
    title: Text
    severity: Severity
    asks: Text  # the question in one sentence
    thresholds: tuple[Threshold, ...]
    remedy: Text
    judge: Callable[[HistoryView, Head], Judgement]
    of_sites: bool = False

    def run(self, history: History | HistoryView) -> list[CheckResult]:
        """Run the check: one result per head that fired, one for all that passed, one per reason not to judge."""
        view = history if isinstance(history, HistoryView) else HistoryView(history)
        heads = [Head(i, None) for i in range(len(view.history.sites))] if self.of_sites else view.heads
        fired: list[CheckResult] = []
        others: dict[tuple[Kind, Text], list[Head]] = {}
        for head in heads:
            said = self.judge(view, head)
            if isinstance(said, Fired):
                fired.append(CheckResult(self.code, said.severity or self.severity, (head,), said.says, said.values))
            else:
                key: tuple[Kind, Text] = ("passed", PASSED) if said is None else (said.kind, said.why)
                others.setdefault(key, []).append(head)
        return fired + [CheckResult(self.code, kind, tuple(of), says) for (kind, says), of in others.items()]


def unseen(*readings: str) -> Absent:
    """The judgement when a reading that the check needs was not taken."""
    names = ", ".join(readings)
    return Absent("unseen", Text(zh=f"没有读到 {names}", en=f"no reading of {names}"))
