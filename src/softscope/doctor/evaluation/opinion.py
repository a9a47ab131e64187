"""Asks the doctor about a model: with readings and a trial, with readings only, and without a loss."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import torch

import softscope
from softscope.doctor.diagnosis import Diagnosis, diagnose
from softscope.doctor.evaluation.projections import Place
from softscope.doctor.evaluation.subjects import Answering, Run, Subject

READINGS = 3
TRIED_ON = 64  # sequences of the doctor's batch
DOCTORS_SEED = 20_000  # of the batches that the doctor gets

Trials = dict[Place, Any]


@dataclasses.dataclass
class Cost:
    """What trials cost: passes over the batch, their seconds, those of trying remedies, and of the training before."""

    passes: float = 0.0
    seconds: float = 0.0
    remedies: float = 0.0
    training: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, x.name) + getattr(other, x.name) for x in dataclasses.fields(Cost)))


@dataclasses.dataclass(frozen=True, eq=False)
class Opinion:
    """What the doctor says about one model.

    Attributes:
        tried: From readings and a trial.
        untried: From the same readings, without the trial.
        blind: From three forward passes, without a loss.
        trials: What the trial showed, by site and head.
        prescriptions: What it prescribes.
        cost: What the trials cost; in seconds, only of models that were trained meanwhile.
    """

    tried: Diagnosis
    untried: Diagnosis
    blind: Diagnosis
    trials: Trials
    prescriptions: list[Any]
    cost: Cost


def watched(run: Run, subject: Subject, *, seed: int, steps: int) -> Opinion:
    """Train a model while the doctor watches, as anybody would: with the probe's defaults."""
    generator = torch.Generator().manual_seed(seed)
    began = time.process_time()
    with softscope.probe(run.model) as scope:
        for _ in range(steps):
            scope.step(loss=run.backward(subject.batch(subject.size, generator, "training")))
            run.update.step()
        return _asked(scope, run, subject, time.process_time() - began)


def looked_at(run: Run, subject: Subject, *, sequences: int = TRIED_ON) -> Opinion:
    """Read a finished model three times; it is tried on so many sequences."""
    generator = torch.Generator().manual_seed(DOCTORS_SEED + 1)
    with softscope.probe(run.model, every=1) as scope:
        for _ in range(READINGS):
            scope.step(loss=run.backward(subject.batch(subject.size, generator, "training")))
        return _asked(scope, run, subject, 0.0, sequences)


def _asked(scope: Any, run: Run, subject: Subject, training: float, sequences: int = TRIED_ON) -> Opinion:
    run.update.zero_grad()
    batch = subject.batch(sequences, torch.Generator().manual_seed(DOCTORS_SEED), "trial")
    untried = diagnose(scope.history())  # before the trial: a history keeps what it showed
    with _sequences(run.model) as seen:
        began = time.process_time()
        trials = scope.trial(batch)
        tried_after = time.process_time() - began
    tried = diagnose(scope.history(), trials=trials)
    began = time.process_time()
    prescriptions = scope.prescribe(batch, optimizer=run.update)
    spent = tried_after, time.process_time() - began, training
    cost = Cost(sum(seen) / sequences, *(spent if training else ()))
    return Opinion(tried, untried, blind(run.model, subject), trials, prescriptions, cost)


def blind(model: Answering, subject: Subject) -> Diagnosis:
    """Read a finished model three times without a loss."""
    generator = torch.Generator().manual_seed(DOCTORS_SEED + 1)
    with softscope.probe(model, every=1) as scope, torch.no_grad():
        for _ in range(READINGS):
            model(**subject.batch(subject.size, generator, "training"))
            scope.step()
    return diagnose(scope.history())


def named(diagnosis: Diagnosis, *kinds: str) -> set[Place]:
    """The heads named by a finding, or by what is of one of these kinds; what names a layer names all of its heads."""
    found = set()
    for outcome in diagnosis.outcomes:
        for head in outcome.heads if outcome.kind in (kinds or ("finding",)) else ():
            site = diagnosis.view.site(head)
            found |= {(site.name, j) for j in (range(site.heads) if head.head is None else (head.head,))}
    return found


def states(diagnosis: Diagnosis) -> dict[Place, str]:
    """The state of each head."""
    view = diagnosis.view
    return {(view.site(head).name, head.head or 0): found.state for head, found in view.states.items()}


def in_state(diagnosis: Diagnosis, *names: str) -> set[Place]:
    """The heads in one of these states."""
    return {place for place, state in states(diagnosis).items() if state in names}


@contextlib.contextmanager
def _sequences(model: Answering) -> Iterator[list[int]]:
    """Count the sequences that go through the model."""
    seen: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda _, __, given: seen.append(len(given["target"])), with_kwargs=True
    )  # fmt: skip
    try:
        yield seen
    finally:
        hook.remove()
