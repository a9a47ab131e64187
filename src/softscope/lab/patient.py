"""The patient of lesson 9: associative recall, trained in the page, with its gradient read as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from softscope.experiments.learning import REMEDIES, remedy_options
from softscope.experiments.recall import BATCH, PAIRS, gradient_state, learning_rate, one_thread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REMEDIES", "Reading", "treat"]

EXAMINED = 24  # sequences that no training step sees


class Reading(NamedTuple):
    """The patient at one step: loss (nats), share of right answers, and what the gradient says."""

    step: int
    loss: float
    accuracy: float
    transmission: float
    advantage: float
    advantage_error: float
    blocked: float


def treat(
    remedy: str,
    *,
    d: int = 64,
    steps: int = 80,
    every: int = 5,
    seed: int = 0,
    progress: Callable[[], Any] | None = None,
) -> list[Reading]:
    """Train one patient and read it every few steps.

    Args:
        remedy: "scaled" (1/√d), "none" (the plain dot product), or another of `REMEDIES`.
        d: components of a head.
        steps: updates.
        every: how many of them lie between two readings.
        seed: decides weights and sequences.
        progress: called at each reading.

    >>> readings = treat("none", d=16, steps=2, every=1)
    >>> [reading.step for reading in readings]
    [0, 1]
    """
    import torch

    import softscope
    from softscope.tasks import RecallModel, recall_batch, train

    model = RecallModel(d, vocabulary=PAIRS, options=remedy_options(remedy, d), seed=seed)
    examined = recall_batch(EXAMINED, pairs=PAIRS, generator=torch.Generator().manual_seed(seed + 1_000_003))
    readings: list[Reading] = []

    def look(step: int, _: float, model: Any) -> None:
        if step % every:
            return
        with torch.no_grad():
            logits = model(*examined.inputs)
            loss = softscope.cross_entropy(logits, examined.target).item()
            accuracy = (logits.argmax(-1) == examined.clean_target).double().mean().item()
        transmission, advantage, blocked = gradient_state(model, examined)
        if transmission is not None and advantage is not None and blocked is not None:
            readings.append(
                Reading(step, loss, accuracy, transmission, advantage.value, advantage.error, blocked.value)
            )
        if progress is not None:
            progress()

    with one_thread():
        train(
            model,
            lambda generator: recall_batch(BATCH, pairs=PAIRS, generator=generator),
            steps=steps,
            learning_rate=learning_rate(d),
            seed=seed,
            on_step=look,
        )
    return readings
