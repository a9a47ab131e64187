"""The built-in patients: associative recall with healthy weights, with W_Q and W_K far too large, and without 1/√d."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import Tensor, nn

    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.prognosis import Prognosis
    from softscope.doctor.read.head_trial import Trials
    from softscope.doctor.read.snapshot import History
    from softscope.tasks import RecallBatch

# Each sequence shows 16 of 64 keys. If it showed all there are, as with KEYS = 16, a query would always meet the same
# logits, and a model without 1/√d would starve for that reason alone; with 64, it learns late. See bench/starving.py.
WIDTH, PAIRS, KEYS, BATCH, RATE = 128, 16, 64, 16, 2e-3
STEPS, EVERY = 100, 5
MORE = 1000  # steps that a prognosis trains on
HELD_OUT, TRIED = 32, 128  # sequences, for measuring and for trying remedies
GAIN = 100.0


@dataclasses.dataclass(frozen=True)
class Patient:
    """One model to train under observation."""

    name: str
    title: Text
    scale: Any = "sqrt"
    gain: float = 1.0  # on the initial W_Q and W_K
    noise: float = 0.0
    keys: int = KEYS  # in all; each sequence shows PAIRS of them


HEALTHY = Patient("healthy", Text(zh="健康", en="healthy"))
# Stuck whatever the vocabulary: with 16, 32, 64 or 128 keys in all, Adam or SGD, at most a fifth of the answers are
# right after 2,000 steps. Hardly a row is open, and where one is, a step is small beside weights 100 times too large.
OVERSIZED = Patient("oversized", Text(zh="q、k 过大", en="large q, k"), gain=GAIN)
UNSCALED = Patient("unscaled", Text(zh="没有 1/√d", en="without 1/√d"), scale=1.0)
PATIENTS = (HEALTHY, OVERSIZED, UNSCALED)


@dataclasses.dataclass(frozen=True)
class Trained:
    """The result of training a patient: its readings, and the share of correct answers over the last steps."""

    patient: Patient
    history: History
    accuracy: float
    seed: int
    model: nn.Module
    optimizer: Any


def train(
    patient: Patient,
    *,
    steps: int = STEPS,
    every: int = EVERY,
    seed: int = 0,
    watch: Callable[[History], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trained:
    """Train a patient under observation; `watch` receives the history after every reading.

    Runs on one thread, because the tensors are small.
    """
    import torch

    import softscope
    from softscope import tasks
    from softscope._one_thread import one_thread

    options = tasks.AttentionOptions(scale=patient.scale, init_gain=patient.gain)
    model = tasks.RecallModel(WIDTH, vocabulary=patient.keys, options=options, seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    with one_thread(), softscope.probe(model, every=every, max_rows=None) as scope:
        if watch is not None:
            scope.on_snapshot(lambda _: watch(scope.history()))
        trained = tasks.train(
            model,
            lambda generator: _batch(patient, BATCH, generator),
            steps=steps,
            optimizer=lambda *_: optimizer,
            seed=seed,
            on_step=lambda _, loss, __: scope.step(loss=loss),
            progress=progress,
        )
        history = scope.history()
    return Trained(patient, history, trained.recent_accuracy(), seed, model, optimizer)


def trials(trained: Trained) -> Trials:
    """Try the heads that the readings suspect, on sequences that the patient has not seen."""
    from softscope._one_thread import one_thread
    from softscope.doctor.diagnosis import diagnose
    from softscope.doctor.read.head_trial import Trials
    from softscope.doctor.trial.head_trial import suspects, try_heads

    heads = suspects(diagnose(trained.history))
    if not heads:
        return Trials()
    with one_thread():
        return try_heads(trained.model, held_out(trained), heads, loss=answer_loss)


def tried(trained: Trained, diagnosis: Diagnosis) -> Diagnosis:
    """Try the remedies that come into question, on sequences that the patient has not seen."""
    from softscope._one_thread import one_thread
    from softscope.doctor.trial.remedy_trial import try_plans

    with one_thread():
        given = try_plans(
            trained.model, diagnosis.prescriptions, held_out(trained, TRIED),
            loss=answer_loss, optimizer=trained.optimizer,
        )  # fmt: skip
    return dataclasses.replace(diagnosis, prescriptions=tuple(given))


def prognosis(
    trained: Trained,
    treat: Callable[[nn.Module], object] | None = None,
    *,
    steps: int = MORE,
    progress: Callable[[float], None] = lambda _: None,
) -> Prognosis:
    """Train the patient on, untreated and treated, on sequences that it has not seen."""
    import torch

    from softscope._one_thread import one_thread
    from softscope.doctor.prognosis import prognosis as measured

    def batch(step: int) -> Any:
        generator = torch.Generator().manual_seed(1_000_000 * (trained.seed + 1) + step)
        return _batch(trained.patient, BATCH, generator).inputs

    with one_thread():
        return measured(
            trained.model, trained.optimizer, batch, held_out(trained),
            steps=steps, loss=answer_loss, treat=treat, progress=progress,
        )  # fmt: skip


def held_out(trained: Trained, size: int = HELD_OUT) -> tuple[Tensor, ...]:
    """Sequences that the patient has not seen and is not trained on; another size gives others."""
    import torch

    return _batch(trained.patient, size, torch.Generator().manual_seed(1_000 * size + trained.seed)).inputs


def answers(model: nn.Module, batch: tuple[Tensor, ...]) -> float:
    """The share of right answers."""
    import torch

    with torch.no_grad():
        return float((model(*batch).argmax(-1) == _target(batch)).float().mean())


def answer_loss(output: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
    """The mean cross-entropy of the answers."""
    from torch.nn import functional

    return functional.cross_entropy(output.flatten(0, -2), _target(batch).flatten())


def _target(batch: tuple[Tensor, ...]) -> Tensor:
    """The value of each queried key: it stands beside the key."""
    keys, values, query = batch
    return values.gather(1, (query.unsqueeze(-1) == keys.unsqueeze(-2)).int().argmax(-1))


def _batch(patient: Patient, size: int, generator: torch.Generator) -> RecallBatch:
    from softscope import tasks

    return tasks.recall_batch(size, pairs=PAIRS, vocabulary=patient.keys, noise=patient.noise, generator=generator)
