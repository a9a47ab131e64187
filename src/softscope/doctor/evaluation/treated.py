"""Does a prescription help? Follow it, train on, and compare with no treatment and with drawing the heads anew."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from softscope.doctor.evaluation.projections import Place, heads
from softscope.doctor.evaluation.subjects import Answering, Batch, Run, Subject
from softscope.doctor.evaluation.truth import Change, compare, sequence_losses

STEPS = 25
TREATED_SEED = 30_000  # of the batches after a treatment


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a prescription did to the held-out loss.

    Attributes:
        remedy: Its name.
        heads: How many heads it changed.
        at_once: The change before any training.
        untreated: After some steps: the loss with the prescription, less the loss without it.
        drawn: The same, less the loss if W_Q and W_K of the same heads were drawn anew instead.
    """

    remedy: str
    heads: int
    at_once: Change
    untreated: Change
    drawn: Change

    @property
    def helped(self) -> bool:
        """Whether the loss is clearly lower after training; or at once, where training makes up for it."""
        return self.untreated.falls or (self.at_once.falls and not self.untreated.rises)


def outcomes(
    run: Run, subject: Subject, prescriptions: Iterable[Any], batch: Batch, *, steps: int = STEPS
) -> tuple[list[Outcome], int]:  # fmt: skip
    """The outcome of each prescription that code can carry out, and how many are advice only."""
    found, advice = [], 0
    untreated: Tensor | None = None
    before = sequence_losses(run.model, batch)
    for given in prescriptions:
        treated, drawn = copy.deepcopy(run), copy.deepcopy(run)
        try:
            changed = given.apply(treated.model)
        except Exception:  # whatever it raises: it cannot be applied here, and that is counted
            advice += 1
            continue
        at_once = compare(sequence_losses(treated.model, batch), before)
        places = _places(changed, run.model)
        _draw(drawn.model, places)
        untreated = _trained_on(copy.deepcopy(run), subject, batch, steps) if untreated is None else untreated
        loss, other = (_trained_on(x, subject, batch, steps) for x in (treated, drawn))
        found.append(Outcome(given.remedy, len(places), at_once, compare(loss, untreated), compare(loss, other)))
    return found, advice


def _trained_on(run: Run, subject: Subject, batch: Batch, steps: int) -> Tensor:
    """The held-out losses after some steps; every model gets the same batches and keeps its optimizer."""
    known = {id(x) for group in run.update.param_groups for x in group["params"]}
    new = [x for x in run.model.parameters() if id(x) not in known]
    if new:
        run.update.add_param_group({"params": new})
    generator = torch.Generator().manual_seed(TREATED_SEED)
    for _ in range(steps):
        run.step(subject.batch(subject.size, generator, "training"))
    return sequence_losses(run.model, batch)


def _places(changed: Any, model: Answering) -> set[Place]:
    """The heads that a remedy changed; a change without heads is one of all heads of its site."""
    every = heads(model)
    return {
        (site, head) for change in changed.changes for site, head in every
        if site == change.site and (not change.heads or head in change.heads)
    }  # fmt: skip


@torch.no_grad()
def _draw(model: Answering, places: set[Place]) -> None:
    generator = torch.Generator().manual_seed(TREATED_SEED)
    for place, maps in heads(model).items():
        if place in places:
            maps.draw(generator)
