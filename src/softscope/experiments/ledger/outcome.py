"""The outcome of checking a claim. The verdict follows from the cases; nobody types it in."""

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
    """What we measured, whether the claim held in each case, and why.

    Attributes:
        cases: label → whether the claim holds in that case; empty if we cannot measure it here.
        measured: the figures, with units, sample size and uncertainty.
        because: the reason, in one sentence.
        only_if: completes "holds only if …"; required if the cases differ.
        source: where to read a cited claim.
        label: "cited" or "opinion" for claims that no measurement here can decide.
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
        cases: Mapping[Any, bool],  # Text or str: type checkers would join the two into one broader type
        *,
        measured: Text | str,
        because: Text,
        only_if: Text | None = None,
    ) -> Outcome:
        """Build the outcome of a measurement; if only some cases are true, `only_if` must state the condition."""
        if not cases:
            raise ValueError("cases must hold at least one case, but got none; use cited() or opinion()")
        # numpy.bool_ is not a bool: JSON rejects it, and `is True` misses it.
        outcome = cls({label: bool(held) for label, held in cases.items()}, measured, because, only_if)
        if outcome.verdict == "only-if" and only_if is None:
            raise ValueError(f"only_if must say when the claim holds, which it does in some cases only: {dict(cases)}")
        return outcome

    @property
    def verdict(self) -> Verdict:
        """Return the verdict that the cases imply, or the label if there are none."""
        if self.label is not None:
            return self.label
        held = sum(self.cases.values())
        return "holds" if held == len(self.cases) else "only-if" if held else "fails"


def cited(*, source: str, because: Text, measured: Text | str = "–") -> Outcome:
    """Label a claim about practice or a paper that we cannot measure here, and say where to read about it."""
    if not source:
        raise ValueError("source must name what is cited, but it is empty; use opinion() if there is no source")
    return Outcome({}, measured, because, source=source, label="cited")


def opinion(because: Text, *, measured: Text | str = "–") -> Outcome:
    """Label a matter of taste or a plan: something neither true nor false."""
    return Outcome({}, measured, because, label="opinion")
