"""The patient of lesson 9: an associative-recall model, trained in the page while the doctor watches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from softscope._one_thread import one_thread
from softscope.experiments.learning import REMEDIES, remedy_options
from softscope.experiments.recall import BATCH, PAIRS, attention_weights, learning_rate
from softscope.experiments.starving import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.read.snapshot import Snapshot

TRIED = 64  # sequences, for trying suspected heads

__all__ = ["KEYS", "REMEDIES", "Course", "Look", "Reading", "best", "looks", "treat"]


class Reading(NamedTuple):
    """The doctor's reading of the patient's head at one step; the loss is in nats."""

    step: int
    loss: float
    transmission: float
    advantage: float
    advantage_error: float
    blocked: float


class Look(NamedTuple):
    """Where a patient looks at one step: for each key it is asked for, the key it reads most and with what weight."""

    step: int
    keys: list[int]
    weights: list[float]

    @property
    def right(self) -> int:
        """Count the questions for which it reads the key it was asked for."""
        return sum(read == asked for asked, read in enumerate(self.keys))


class Course(NamedTuple):
    """How a patient did: readings, where it looked, the share of correct answers at each step, the doctor's verdict."""

    readings: list[Reading]
    looks: list[Look]
    answers: list[float]
    accuracy: float
    diagnosis: Diagnosis


def treat(
    remedy: str,
    *,
    d: int = 64,
    keys: int = PAIRS,
    steps: int = 80,
    every: int = 5,
    seed: int = 0,
    watch: Callable[[Reading, list[Look]], None] | None = None,
) -> Course:
    """Train one patient under `softscope.probe` and let the doctor judge it, with a trial of what it suspects.

    Every batch is new to the model, so the share of correct answers is measured on unseen sequences.

    Args:
        remedy: "scaled" (1/√d), "none" (the plain dot product), or another of `REMEDIES`.
        d: head dimension.
        keys: number of keys in all; each sequence shows 16 of them.
        steps: number of updates.
        every: number of updates between two readings.
        seed: seeds the weights and sequences.
        watch: called with each reading as soon as it is taken, and with all looks so far.

    >>> course = treat("none", d=16, steps=2, every=1)
    >>> [reading.step for reading in course.readings], len(course.looks), len(course.answers)
    ([0, 1], 2, 2)
    """
    import torch

    import softscope
    from softscope.doctor.diagnosis import diagnose
    from softscope.doctor.patients import answer_loss
    from softscope.doctor.trial.head_trial import suspects, try_heads
    from softscope.tasks import RecallModel, recall_batch, train

    model = RecallModel(d, vocabulary=keys, options=remedy_options(remedy, d), seed=seed)
    readings: list[Reading] = []
    seen: list[Look] = []

    def look(snapshot: Snapshot) -> None:
        readings.append(_reading(snapshot))
        seen.append(looks(model, snapshot.step))
        if watch is not None:
            watch(readings[-1], seen)

    with one_thread(), softscope.probe(model, every=every, max_rows=None) as scope:
        scope.on_snapshot(look)
        trained = train(
            model,
            lambda generator: recall_batch(BATCH, pairs=PAIRS, vocabulary=keys, generator=generator),
            steps=steps,
            learning_rate=learning_rate(d),
            seed=seed,
            on_step=lambda _, loss, __: scope.step(loss=loss),
        )
        history = scope.history()
    diagnosis = diagnose(history)
    if heads := suspects(diagnosis):
        new = recall_batch(TRIED, pairs=PAIRS, vocabulary=keys, generator=torch.Generator().manual_seed(seed + 1_003))
        with one_thread():
            diagnosis = diagnose(history, trials=try_heads(model, new.inputs, heads, loss=answer_loss))
    return Course(readings, seen, trained.accuracy, trained.recent_accuracy(), diagnosis)


def looks(model: Any, step: int) -> Look:
    """Ask the model for each of the first 16 keys, all of them shown, and see which one it reads.

    Its readings are taken from batches; this is one fixed sequence, so that two steps can be compared.
    """
    import torch

    asked = torch.arange(PAIRS)[None]
    weights, keys = attention_weights(model, asked, asked)[0].max(-1)
    return Look(step, keys.tolist(), weights.tolist())


def best(courses: Mapping[str, Course]) -> list[str]:
    """Name the models with the most correct answers, to a whole percent: all of them, if several are equal.

    >>> class Half: accuracy = 0.5
    >>> class All: accuracy = 0.998
    >>> class Also: accuracy = 1.0
    >>> best({"a": Half, "b": All, "c": Also})
    ['b', 'c']
    """
    shown = {name: round(100 * course.accuracy) for name, course in courses.items()}
    return [name for name, percent in shown.items() if percent == max(shown.values())]


def _reading(snapshot: Snapshot) -> Reading:
    names = ("transmission:median", "advantage", "advantage_error", "blocked")
    values = (float(snapshot.readings[name][0, 0]) for name in names)
    return Reading(snapshot.step, float("nan") if snapshot.loss is None else snapshot.loss, *values)
