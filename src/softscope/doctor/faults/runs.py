"""Trains one model, with a fault or without, while the doctor watches; and what came of both."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import math
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

import softscope
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.faults import hooks
from softscope.doctor.faults.catalogue import FAULTS, Fault, Target
from softscope.doctor.faults.models import BATCH, KINDS, Batch, Kind
from softscope.doctor.read.head_trial import Trials
from softscope.doctor.read.snapshot import History
from softscope.doctor.scope import Scope

STEPS, RATE = 200, 2e-3
HELD_OUT, HELD_OUT_SEED, DOCTORS_SEED = 256, 10_000, 20_000
TRIED_ON = 64
SPOKEN = ("finding", "tip", "informative")


@dataclasses.dataclass(frozen=True)
class Case:
    """Which run it is.

    Attributes:
        of: The name of the kind of model.
        seed: Of its weights and batches; it also decides whether attention is computed by `sdpa` or step by step.
        name: The name of the fault; "" for a healthy run.
        mild: It is in one layer instead of all.
        rate: The learning rate.
        width: The width of the model.
        mended: The step at which the fault is taken away; None for never.
        slower: The step from which on the learning rate is a tenth, which is what one would try; None for never.
        steps: How long it trains.
    """

    of: str
    seed: int
    name: str = ""
    mild: bool = False
    rate: float = RATE
    width: int = 64
    mended: int | None = None
    slower: int | None = None
    steps: int = STEPS

    @property
    def kind(self) -> Kind:
        """The kind of model."""
        return next(kind for kind in KINDS if kind.name == self.of)

    @property
    def fault(self) -> Fault | None:
        """The fault, if there is one."""
        return next((fault for fault in FAULTS if fault.name == self.name), None)


@dataclasses.dataclass(frozen=True)
class Said:
    """One thing that the doctor said: check, kind of message, site, and the first step at which it said so."""

    code: str
    kind: str
    site: str
    step: int


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """What came of a run.

    Attributes:
        case: Which run it was.
        touched: The sites with the fault.
        losses: The training loss of each step.
        loss: The held-out loss of the model as it is used: with its fault, or without where only training has it.
        said: What the doctor says at the end, each with the first step from which on it said so.
    """

    case: Case
    touched: tuple[str, ...]
    losses: tuple[float, ...]
    loss: float
    said: tuple[Said, ...]


class Watched(NamedTuple):
    """A model that was trained with its fault, which is still there."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scope: Scope
    losses: tuple[float, ...]
    touched: tuple[str, ...]

    def batch(self, kind: Kind) -> Batch:
        """What the doctor may try on."""
        return kind.batch(TRIED_ON, torch.Generator().manual_seed(DOCTORS_SEED))


@contextlib.contextmanager
def watched(case: Case) -> Iterator[Watched]:
    """Train and watch; afterwards the fault is taken away."""
    torch.set_num_threads(1)
    fault = case.fault
    model = case.kind.model(case.seed, width=case.width, way="eager" if fault is not None and fault.eager else None)
    target = _target(case, model)
    with target.undo:
        if fault is not None:
            fault.inject(target)
        trained = [p for p in model.parameters() if p.requires_grad and id(p) not in target.withheld]
        optimizer = torch.optim.Adam(trained, case.rate)
        generator = torch.Generator().manual_seed(case.seed)
        losses = []
        with softscope.probe(model) as scope, _quiet():
            for step in range(case.steps):
                if step == case.mended:
                    _mend(target, optimizer)
                if step == case.slower:
                    optimizer.param_groups[0]["lr"] *= 0.1
                batch = case.kind.batch(BATCH, generator)
                optimizer.zero_grad()
                loss = model(**batch).loss
                loss.backward()
                optimizer.step()
                losses.append(float(loss.detach()))
                scope.step(loss=losses[-1])
            optimizer.zero_grad()
            yield Watched(model, optimizer, scope, tuple(losses), tuple(target.touched) if fault else ())


def run(case: Case) -> Result:
    """Train and watch."""
    fault = case.fault
    with watched(case) as of:
        trials = of.scope.trial(of.batch(case.kind))
        if fault is None or not fault.repaired:
            found = held_out(of.model, case.kind)
    if fault is not None and fault.repaired:
        found = held_out(of.model, case.kind)
    return Result(case, of.touched, of.losses, found, tuple(_said(of.scope.history(), trials)))


def _mend(target: Target, optimizer: torch.optim.Optimizer) -> None:
    target.undo.close()
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    new = [p for p in target.model.parameters() if id(p) not in held]
    if new:
        optimizer.add_param_group({"params": new})


def quiet() -> None:
    """Keep transformers from telling about configurations as small as these."""
    importlib.import_module("transformers").logging.set_verbosity_error()


def held_out(model: nn.Module, kind: Kind) -> float:
    """The loss on text that was not trained on; infinite if it is no number."""
    batch: Batch = kind.batch(HELD_OUT, torch.Generator().manual_seed(HELD_OUT_SEED))
    training = model.training
    with torch.no_grad():
        loss = float(model.eval()(**batch).loss)
    model.train(training)
    return loss if math.isfinite(loss) else math.inf


def _target(case: Case, model: nn.Module) -> Target:
    word = case.fault.only if case.fault is not None else ""
    every = {path: module for path, module in hooks.attentions(model).items() if word in path}
    if case.mild:
        one = list(every)[case.seed % len(every)]
        every = {one: every[one]}
    return Target(model, case.kind, every)


def _said(history: History, trials: Trials) -> Iterator[Said]:
    """What is said at the end, with the trials, and since when without a break; what only they show, at the end."""
    since: dict[tuple[str, str], int] = {}
    now: dict[tuple[str, str], str] = {}
    for i, snapshot in enumerate(history.snapshots):
        so_far = dataclasses.replace(history, snapshots=history.snapshots[: i + 1])
        found = diagnose(so_far, trials=trials if so_far.snapshots == history.snapshots else {})
        told = [
            (SPOKEN.index(outcome.kind), outcome.code, found.view.site(outcome.heads[0]).name)
            for outcome in found.outcomes if outcome.kind in SPOKEN
        ]  # fmt: skip
        now = {(code, site): SPOKEN[kind] for kind, code, site in sorted(told, reverse=True)}  # the gravest counts
        since = {key: since.get(key, snapshot.step) for key in now}
    for (code, site), step in sorted(since.items()):
        yield Said(code, now[code, site], site, step)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
