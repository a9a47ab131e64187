"""The patient of lesson 9: an associative-recall model, trained in the page while the doctor watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softscope.experiments.learning import REMEDIES, remedy_options
from softscope.experiments.recall import BATCH, PAIRS, learning_rate, one_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.judge.diagnosis import Diagnosis
    from softscope.doctor.read.snapshot import Snapshot

__all__ = ["REMEDIES", "Course", "Reading", "treat"]


class Reading(NamedTuple):
    """The doctor's reading of the patient's head at one step; the loss is in nats."""

    step: int
    loss: float
    transmission: float
    advantage: float
    advantage_error: float
    blocked: float


class Course(NamedTuple):
    """How a patient did: its readings, the share of correct answers at each step, and the doctor's verdict."""

    readings: list[Reading]
    answers: list[float]
    accuracy: float
    diagnosis: Diagnosis


def treat(
    remedy: str,
    *,
    d: int = 64,
    steps: int = 80,
    every: int = 5,
    seed: int = 0,
    watch: Callable[[Reading], None] | None = None,
) -> Course:
    """Train one patient under `softscope.probe` and let the doctor judge it.

    Every batch is new to the model, so the share of correct answers is measured on unseen sequences.

    Args:
        remedy: "scaled" (1/√d), "none" (the plain dot product), or another of `REMEDIES`.
        d: head dimension.
        steps: number of updates.
        every: number of updates between two readings.
        seed: seeds the weights and sequences.
        watch: called with each reading as soon as it is taken.

    >>> course = treat("none", d=16, steps=2, every=1)
    >>> [reading.step for reading in course.readings], len(course.answers)
    ([0, 1], 2)
    """
    import softscope
    from softscope.doctor.judge.diagnosis import diagnose
    from softscope.tasks import RecallModel, recall_batch, train

    model = RecallModel(d, vocabulary=PAIRS, options=remedy_options(remedy, d), seed=seed)
    readings: list[Reading] = []

    def look(snapshot: Snapshot) -> None:
        readings.append(_reading(snapshot))
        if watch is not None:
            watch(readings[-1])

    with one_thread(), softscope.probe(model, every=every, max_rows=None) as scope:
        scope.on_snapshot(look)
        trained = train(
            model,
            lambda generator: recall_batch(BATCH, pairs=PAIRS, generator=generator),
            steps=steps,
            learning_rate=learning_rate(d),
            seed=seed,
            on_step=lambda _, loss, __: scope.step(loss=loss),
        )
        history = scope.history()
    return Course(readings, trained.accuracy, trained.recent_accuracy(), diagnose(history))


def _reading(snapshot: Snapshot) -> Reading:
    names = ("transmission:median", "advantage", "advantage_error", "blocked")
    values = (float(snapshot.readings[name][0, 0]) for name in names)
    return Reading(snapshot.step, float("nan") if snapshot.loss is None else snapshot.loss, *values)
