"""The outcome of checking a claim. The verdict follows from the cases; nobody types it in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from softscope._text import Text, said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Verdict = Literal["holds", "only-if", "fails", "cited", "opinion"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Evidence = Literal["measured", "derived", "quoted", "judged"]
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
Stance = Literal["supports", "contradicts"]

_NOT_SO = Text(zh="不成立的有：{}。", en="What does not hold: {}.")
_ALL_SO = Text(zh="各项都成立：{}。", en="Everything holds: {}.")


class Case(NamedTuple):
    """One thing that was looked at.

    A *part* is a half of the sentence: if one is false, so is the sentence. An *input* is a setting in which the whole
    sentence was tried: if it is true in some of them only, they are its condition.
    """

    label: Text | str
    held: bool
    kind: Literal["part", "input"]


@dataclass(frozen=True)
class Outcome:
    """What we found, whether the claim held in each case, and why.

    Attributes:
        cases: the parts of the sentence and the inputs it was tried on; empty if no case can decide.
        measured: the figures, with units, sample size and uncertainty.
        reasons: the reason for each verdict we can explain; a world that gives another one gets a plain list.
        only_if: completes "holds only if …", a condition on the inputs; required if it holds for some of them only.
        instead: the sentence that is true, for a claim that fails.
        evidence: where the figures come from. "measured": we ran it; "derived": we proved it, by symbols or by logic;
            "quoted": it stands in a source that we looked up; "judged": there is nothing to measure.
        source: where to read what is quoted.
        label: "cited" or "opinion" for claims that nothing here can decide.
        supports: for a cited claim, whether the source says the same.
    """

    cases: tuple[Case, ...]
    measured: Text | str
    reasons: Mapping[Verdict, Text]
    only_if: Text | None = None
    instead: Text | None = None
    evidence: Evidence = "measured"
    source: str = ""
    label: Literal["cited", "opinion"] | None = None
    supports: bool | None = None

    @classmethod
    def of(
        cls,
        parts: Mapping[Any, bool] | None = None,  # Text or str: type checkers would join the two into one broader type
        *,
        measured: Text | str,
        because: Mapping[Verdict, Text],
        under: Mapping[Any, bool] | None = None,
        only_if: Text | None = None,
        instead: Text | None = None,
        evidence: Evidence = "measured",
        source: str = "",
    ) -> Outcome:
        """Build the outcome of a check.

        Args:
            parts: what the sentence says, piece by piece; all must be true.
            measured: the figures.
            because: for each verdict that the claim may get, why.
            under: inputs that the sentence as written was tried on; true for some only means "holds only if".
            only_if: the condition on the inputs.
            instead: what is true, in one line; give it wherever the claim may fail.
            evidence: see the class.
            source: what was quoted.

        Raises:
            ValueError: if there is nothing to decide by, if the inputs differ and `only_if` does not say in what, or
                if something is quoted without a source.

        >>> why = {"fails": Text(zh="两半相差很远。", en="The halves are far apart.")}
        >>> Outcome.of({"a": True, "b": False}, measured="1", because=why).verdict
        'fails'
        """
        # numpy.bool_ is not a bool: JSON rejects it, and `is True` misses it.
        cases = [Case(label, bool(held), "part") for label, held in (parts or {}).items()]
        cases += [Case(label, bool(held), "input") for label, held in (under or {}).items()]
        if not cases:
            raise ValueError("parts or under must hold at least one case, but got none; use cited() or opinion()")
        if evidence == "quoted" and not source:
            raise ValueError("source must name what is quoted, but it is empty; name the paper and the place in it")
        outcome = cls(tuple(cases), measured, dict(because), only_if, instead, evidence, source)
        if outcome.verdict == "only-if" and only_if is None:
            raise ValueError(f"only_if must say for which inputs the claim holds, which it does for some only: {cases}")
        return outcome

    @property
    def verdict(self) -> Verdict:
        """Return the verdict that the cases imply, or the label if there are none.

        A sentence with a false part fails, whatever it was tried on.
        """
        if self.label is not None:
            return self.label
        tried = [case.held for case in self.cases if case.kind == "input"]
        if not all(case.held for case in self.cases if case.kind == "part") or (tried and not any(tried)):
            return "fails"
        return "holds" if all(tried) else "only-if"

    @property
    def because(self) -> Text:
        """Return the reason for the verdict that came out."""
        if self.verdict in self.reasons:
            return self.reasons[self.verdict]
        wrong = [case.label for case in self.cases if not case.held]
        return (_NOT_SO if wrong else _ALL_SO).format(_listed(wrong or [case.label for case in self.cases]))

    @property
    def stance(self) -> Stance | None:
        """Say whether the quoted source supports the claim; None if nothing was quoted."""
        if self.evidence != "quoted":
            return None
        return "supports" if self.supports or self.verdict == "holds" else "contradicts"

    def turned(self, held: bool) -> Outcome:
        """Return the outcome of a world in which every case comes out the given way."""
        return replace(self, cases=tuple(case._replace(held=held) for case in self.cases))


def _listed(labels: Sequence[Text | str]) -> Text:
    return Text(zh="；".join(said(x, "zh") for x in labels), en="; ".join(said(x, "en") for x in labels))


def cited(*, source: str, supports: bool, because: Text, measured: Text | str = "–") -> Outcome:
    """Label a claim about practice that we cannot measure here: say where to read about it, and what stands there."""
    if not source:
        raise ValueError("source must name what is cited, but it is empty; use opinion() if there is no source")
    return Outcome((), measured, {"cited": because}, evidence="quoted", source=source, label="cited", supports=supports)


def opinion(because: Text, *, measured: Text | str = "–") -> Outcome:
    """Label a matter of taste or a plan: something neither true nor false."""
    return Outcome((), measured, {"opinion": because}, evidence="judged", label="opinion")
