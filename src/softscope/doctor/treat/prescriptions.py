"""A prescription: one remedy for the heads that need it, why, what to expect, and whether it was tried."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from softscope._text import Text
from softscope.doctor.treat.treatment import Treatment

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head
    from softscope.doctor.treat.remedies import Applied
    from softscope.doctor.trial.remedy_result import RemedyTrial

NOT_TRIED = Text(
    zh="候选，没有试过：给医生模型、一个批次和损失（scope.prescribe(batch)），它会先试再开",
    en="candidate, not tried: give the doctor the model, a batch and a loss (scope.prescribe(batch)), and it tries "
    "before it prescribes",
)


@dataclasses.dataclass(frozen=True)
class Prescription:
    """One remedy for the heads that need it; no head is in two of them.

    Attributes:
        remedy: For programs: "scale", "temperature", "reinitialise", "qk-clip", "unit-qk-norm", "repair", "qk-norm",
            "learning-rate", "dtype", or "none" if nothing that was tried helps.
        heads: The worst first.
        what: What to do.
        why: The reason.
        expect: The reading to expect afterwards.
        evidence: What it rests on.
        does_not: What is known not to help.
        treatment: The part that code can carry out.
        advice: What else helps, such as another set-up from the start; no remedy for this model.
        candidates: The treatments to try; the first is given if nothing is tried.
        freed: Whether its heads must be able to learn afterwards: fewer than 10% blocked rows.
        tried: What trying it showed; None if it was not tried.
        untried: Why it was not tried.

    >>> import softscope
    >>> from softscope import tasks
    >>> model = tasks.RecallModel(d=256, vocabulary=16, options=tasks.AttentionOptions(scale=1.0))   # 1/√d forgotten
    >>> with softscope.probe(model, every=1) as scope:
    ...     _ = tasks.train(model, lambda g: tasks.recall_batch(32, pairs=16, generator=g), steps=4)
    >>> (given,) = scope.prescribe()
    >>> given.remedy, given.tried, given.apply(model).changes[0].heads
    ('scale', None, (0,))
    """

    remedy: str
    heads: tuple[Head, ...]
    what: Text
    why: Text
    expect: Text
    evidence: Text
    does_not: Text | None = None
    treatment: Treatment | None = None
    advice: Text | None = None
    candidates: tuple[Treatment, ...] = ()
    freed: bool = False
    tried: RemedyTrial | None = None
    untried: Text = NOT_TRIED

    def apply(self, model: Any) -> Applied:
        """Carry out the part that code can do; the result lists the changes, and its `undo()` reverts them.

        Args:
            model: the model that was read; changed in place.
        """
        if self.treatment is None:
            from softscope.doctor.treat.remedies import NotSupportedError

            raise NotSupportedError(f"not supported: {self.remedy} is nothing to change in the model; {self.what.en}")
        return self.treatment.apply(model)

    @property
    def standing(self) -> Text | None:
        """Whether it was tried, and what that showed; None if there is nothing to try."""
        if self.tried is not None:
            return self.tried.said
        return self.untried if self.treatment is not None or self.candidates else None
