"""What came of checking a claim. The verdict follows from the cases; nobody types it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope._text import Text

Verdict = Literal["holds", "only-if", "fails", "cited", "opinion"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Outcome:
    """What was measured, whether the claim stood in each case, and why.

    Attributes:
        cases: label → whether the claim holds in that case; empty for what cannot be measured here.
        measured: the figures, with units, sample size and uncertainty.
        because: the reason, in one sentence.
        only_if: completes "holds only if …"; needed where the cases differ.
        source: where a cited claim can be read.
        label: "cited" or "opinion" for what no measurement here can decide.
    """

    cases: Mapping[Text | str, bool]
    measured: Text | str
    because: Text
    only_if: Text | None = None
    source: str = ""
    label: Literal["cited", "opinion"] | None = None

    @classmethod
    def of(
        cls,
        cases: Mapping[Any, bool],  # Text or str: a checker joins the two into a type of its own
        *,
        measured: Text | str,
        because: Text,
        only_if: Text | None = None,
    ) -> Outcome:
        """The outcome of a measurement: all cases true, none, or some; some need the condition in words."""
        if not cases:
            raise ValueError("cases must hold at least one case, but none came; use cited() or opinion()")
        # numpy.bool_ is no bool: JSON would refuse it, and `is True` would miss it.
        outcome = cls({label: bool(held) for label, held in cases.items()}, measured, because, only_if)
        if outcome.verdict == "only-if" and only_if is None:
            raise ValueError(f"only_if must say when the claim holds, since it does in some cases only: {dict(cases)}")
        return outcome

    @property
    def verdict(self) -> Verdict:
        """What follows from the cases, or the label where there are none."""
        if self.label is not None:
            return self.label
        held = sum(self.cases.values())
        return "holds" if held == len(self.cases) else "only-if" if held else "fails"


def cited(*, source: str, because: Text, measured: Text | str = "–") -> Outcome:
    """A claim about practice or about a paper that no measurement here can decide; says where to read."""
    if not source:
        raise ValueError("source must name what is cited, but it is empty; use opinion() where there is none")
    return Outcome({}, measured, because, source=source, label="cited")


def opinion(because: Text, *, measured: Text | str = "–") -> Outcome:
    """A judgement of taste, or a plan: nothing that could be true or false."""
    return Outcome({}, measured, because, label="opinion")
