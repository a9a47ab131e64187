"""The two built-in patients: associative recall at d = 256, once with 1/√d and once without."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from softscope._text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.read.snapshot import History

WIDTH, PAIRS, BATCH, RATE = 256, 16, 16, 3e-4
STEPS, EVERY = 200, 5


@dataclasses.dataclass(frozen=True)
class Patient:
    """One model to train under observation."""

    name: str
    title: Text
    scale: Any
    noise: float = 0.0


SCALED = Patient("scaled", Text(zh="有 1/√d", en="with 1/√d"), "sqrt")
UNSCALED = Patient("unscaled", Text(zh="没有 1/√d", en="without 1/√d"), 1.0)
PATIENTS = (SCALED, UNSCALED)


@dataclasses.dataclass(frozen=True)
class Trained:
    """The result of training a patient: its readings, and the share of correct answers over the last steps."""

    patient: Patient
    history: History
    accuracy: float


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

    model = tasks.RecallModel(WIDTH, vocabulary=PAIRS, options=tasks.AttentionOptions(scale=patient.scale), seed=seed)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with softscope.probe(model, every=every, max_rows=None) as scope:
            if watch is not None:
                scope.on_snapshot(lambda _: watch(scope.history()))
            trained = tasks.train(
                model,
                lambda generator: tasks.recall_batch(BATCH, pairs=PAIRS, noise=patient.noise, generator=generator),
                steps=steps,
                learning_rate=RATE,
                seed=seed,
                on_step=lambda _, loss, __: scope.step(loss=loss),
                progress=progress,
            )
            history = scope.history()
    finally:
        torch.set_num_threads(before)
    return Trained(patient, history, trained.recent_accuracy())
