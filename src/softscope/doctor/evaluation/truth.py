"""What a head is worth: how the held-out loss changes if it is made uniform, softer, or drawn anew.

Nothing here is shared with the doctor's trials. A head is changed where its q is computed: q/T divides its logits by T,
and q = 0 makes it uniform over the keys it sees. The losses are in float64 and compared sequence by sequence.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from softscope.tasks import IGNORED

if TYPE_CHECKING:
    from softscope.doctor.evaluation.projections import HeadMaps, Place
    from softscope.doctor.evaluation.subjects import Answering, Batch

SOFTER = (2.0, 8.0, 32.0, 128.0)  # temperatures
CLEAR = 2.0  # standard errors
FLOOR = 0.001  # nats; less than that is no difference, however sure
LEARNED = 0.1  # nats below the untrained model and the best answer that ignores the input


@dataclasses.dataclass(frozen=True)
class Change:
    """The mean change of the loss over sequences, and its standard error.

    >>> Change(0.1, 0.01).rises, Change(-0.1, 0.01).falls, Change(0.1, 0.06).rises, Change(0.0005, 0.0).rises
    (True, True, False, False)
    """

    mean: float
    error: float

    @property
    def rises(self) -> bool:
        """Whether the loss clearly rises."""
        return self.mean > max(CLEAR * self.error, FLOOR)

    @property
    def falls(self) -> bool:
        """Whether the loss clearly falls."""
        return self.mean < -max(CLEAR * self.error, FLOOR)


@dataclasses.dataclass(frozen=True)
class Worth:
    """What a head is worth.

    Attributes:
        uniform: The change of the loss if the head reads all visible keys alike.
        softer: The same by temperature; empty if the head is useful, where it was not asked.
        drawn: The same if W_Q and W_K are drawn anew; None if the head is useful.
    """

    uniform: Change
    softer: dict[float, Change] = dataclasses.field(default_factory=dict)
    drawn: Change | None = None

    @property
    def useful(self) -> bool:
        """Whether the loss clearly rises without what it reads."""
        return self.uniform.rises

    @property
    def stuck(self) -> bool:
        """Whether the loss clearly falls if the head is made uniform, softer, or drawn anew."""
        others = () if self.drawn is None else (self.drawn,)
        return any(change.falls for change in (self.uniform, *self.softer.values(), *others))


@torch.no_grad()
def sequence_losses(model: Answering, batch: Batch) -> Tensor:
    """The mean cross-entropy of each sequence, in float64."""
    training = model.training
    model.eval()
    logits = model(**batch).logits.double()
    model.train(training)
    target = batch["target"]
    losses = functional.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=IGNORED, reduction="none")
    losses, asked = losses.reshape(len(target), -1), (target != IGNORED).reshape(len(target), -1)
    return losses.sum(dim=1) / asked.sum(dim=1)


def compare(after: Tensor, before: Tensor) -> Change:
    """The change from one set of sequence losses to another of the same sequences."""
    away = after - before
    return Change(float(away.mean()), float(away.std()) / math.sqrt(len(away)))


@torch.no_grad()
def worth(model: Answering, batch: Batch, heads: dict[Place, HeadMaps]) -> dict[Place, Worth]:
    """The worth of each head on a batch that neither training nor the doctor saw."""
    before = sequence_losses(model, batch)
    generator = torch.Generator().manual_seed(0)
    found = {}
    for place, maps in heads.items():

        def at(factor: float, maps: HeadMaps = maps) -> Change:
            with maps.q.multiplied(factor):
                return compare(sequence_losses(model, batch), before)

        uniform = at(0.0)
        if uniform.rises:
            found[place] = Worth(uniform)
            continue
        softer = {temperature: at(1 / temperature) for temperature in SOFTER}
        with maps.q.restored(), maps.k.restored():
            maps.draw(generator)
            found[place] = Worth(uniform, softer, compare(sequence_losses(model, batch), before))
    return found


def best_constant(target: Tensor, held_out: Tensor) -> float:
    """The held-out loss of the best answer that ignores the input: the frequencies of the targets, plus one each."""
    known, asked = target[target != IGNORED], held_out[held_out != IGNORED]
    counts = torch.bincount(known, minlength=int(asked.max()) + 1).double() + 1
    return float(-(counts / counts.sum()).log()[asked].mean())


def learned(losses: Tensor, bound: float) -> bool:
    """Whether a model learned: its loss is clearly below that of the best that learned nothing."""
    error = float(losses.std()) / math.sqrt(len(losses))
    return float(losses.mean()) + CLEAR * error < bound - LEARNED
