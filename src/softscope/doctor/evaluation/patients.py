"""The models of one seed, healthy and spoiled, with the truth about their heads and the doctor's opinion."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator

import torch

from softscope import tasks
from softscope.doctor.evaluation import spoil, subjects, truth
from softscope.doctor.evaluation.opinion import Opinion, in_state, looked_at, named, watched
from softscope.doctor.evaluation.projections import Place, heads
from softscope.doctor.evaluation.subjects import Batch, Run, Subject
from softscope.doctor.evaluation.treated import STEPS as TREATED_STEPS
from softscope.doctor.evaluation.treated import Outcome, outcomes
from softscope.doctor.evaluation.truth import Worth

RATES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
FAMILY_RATES = (1e-3, 3e-3, 1e-2)
HIGH = 3e-2  # a rate at which models are as a rule spoiled
STEPS, SLOW_STEPS = 150, 300  # the latter at 1e-4
SHOWN = 400  # sequences whose targets tell the best answer that ignores the input
TRUTHS_SEED = 10_000

# What is wrong from the start, and which models it is done to.
STARTS: dict[str, tasks.AttentionOptions] = {
    "no scale": tasks.AttentionOptions(scale=1.0),
    "scale 4": tasks.AttentionOptions(scale=4.0),
    "q, k × 8": tasks.AttentionOptions(init_gain=8.0),
}
START_RATE = 1e-3
START_SUBJECTS = (subjects.TEXT, subjects.RECALL_WIDE)
# What is done to single heads of trained models, and to which; twice each, in other heads.
AFTERWARDS = {"q × 30": spoil.multiply_q, "k shifted": spoil.shift_k}
AFTER_SUBJECTS = {(subjects.TEXT, 1e-3), (subjects.KEYWORDS, 1e-2), (subjects.RECALL, 3e-3), (subjects.GPT2, 1e-3)}
COPIES = 2


@dataclasses.dataclass(frozen=True)
class Case:
    """Which model it is: the way it was spoiled (a key of `spoil.WAYS`), what it learns, at which rate and seed."""

    way: str
    subject: Subject
    rate: float
    seed: int


@dataclasses.dataclass(frozen=True, eq=False)
class Patient:
    """A model, what was done to it, what its heads are worth, and what the doctor says.

    Attributes:
        case: Which model it is.
        touched: The heads that were spoiled.
        loss: The held-out loss.
        learned: Whether it learned.
        worth: What each head is worth: the truth.
        opinion: What the doctor says.
        outcomes: What its prescriptions did.
        advice: How many prescriptions cannot be carried out by code.
    """

    case: Case
    touched: frozenset[Place]
    loss: float
    learned: bool
    worth: dict[Place, Worth]
    opinion: Opinion
    outcomes: list[Outcome]
    advice: int


def patients(seed: int, progress: Callable[[float], None]) -> Iterator[Patient]:
    """All patients of one seed."""
    torch.set_num_threads(1)
    work = [(subject, rate) for subject in subjects.OURS for rate in RATES]
    work += [(subject, rate) for subject in subjects.FAMILIES for rate in FAMILY_RATES]
    total = len(work) + len(STARTS) * len(START_SUBJECTS)
    for done, (subject, rate) in enumerate(work):
        progress(done / total)
        run = subject.run(seed, rate)
        said = watched(run, subject, seed=seed, steps=SLOW_STEPS if rate < 1e-3 else STEPS)
        way = "high rate" if rate >= HIGH else "healthy"
        yield _patient(Case(way, subject, rate, seed), run, heads(run.model) if way == "high rate" else (), said)
        if (subject, rate) in AFTER_SUBJECTS:
            yield from _spoiled_afterwards(run, subject, rate, seed)
    for done, (way, subject) in enumerate((way, subject) for way in STARTS for subject in START_SUBJECTS):
        progress((len(work) + done) / total)
        run = subject.run(seed, START_RATE, STARTS[way])
        said = watched(run, subject, seed=seed, steps=STEPS)
        yield _patient(Case(way, subject, START_RATE, seed), run, heads(run.model), said)


def _spoiled_afterwards(healthy: Run, subject: Subject, rate: float, seed: int) -> Iterator[Patient]:
    generator = torch.Generator().manual_seed(seed)
    for way, change in AFTERWARDS.items():
        for copied in range(COPIES):
            run = copy.deepcopy(healthy)
            every = heads(run.model)
            sites = list(dict.fromkeys(site for site, _ in every))
            touched = [(site, (seed + copied + 2 * i) % subjects.HEADS) for i, site in enumerate(sites)]
            for place in touched:
                change(every[place], generator)
            said = looked_at(run, subject)
            # The other heads were measured in the healthy model.
            yield _patient(Case(way, subject, rate, seed), run, touched, said, only_doubtful=True)


def _patient(
    case: Case, run: Run, touched: Iterable[Place], said: Opinion, *, only_doubtful: bool = False
) -> Patient:  # fmt: skip
    subject = case.subject
    batch = subject.batch(subject.held_out, torch.Generator().manual_seed(TRUTHS_SEED), "held out")
    untrained = float(truth.sequence_losses(subject.model(case.seed), batch).mean())
    shown = subject.batch(SHOWN, torch.Generator().manual_seed(case.seed), "training")["target"]
    bound = min(untrained, truth.best_constant(shown, batch["target"]))
    return patient(case, run, touched, said, batch, bound, only_doubtful=only_doubtful)


def patient(
    case: Case, run: Run, touched: Iterable[Place], said: Opinion, batch: Batch, bound: float, *,
    steps: int = TREATED_STEPS, only_doubtful: bool = False,
) -> Patient:  # fmt: skip
    """Put the truth beside the doctor's opinion.

    Args:
        case: Which model it is.
        run: The model.
        touched: The heads that were spoiled.
        said: The doctor's opinion.
        batch: What the truth is measured on.
        bound: The loss of the best model that learned nothing.
        steps: How long to train on after a treatment.
        only_doubtful: Measure only heads that were touched, named or suspected.
    """
    touched = frozenset(touched)
    every = heads(run.model)
    if only_doubtful:
        doubtful = touched | named(said.tried) | in_state(said.untried, "starving", "suspected")
        every = {place: maps for place, maps in every.items() if place in doubtful}
    losses = truth.sequence_losses(run.model, batch)
    found, advice = outcomes(run, case.subject, said.prescriptions, batch, steps=steps)
    worth = truth.worth(run.model, batch, every)
    return Patient(case, touched, float(losses.mean()), truth.learned(losses, bound), worth, said, found, advice)
