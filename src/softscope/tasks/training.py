"""The plain training loop that doctor, experiments and lab share: seeded, silent, observed through callbacks."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope._arguments.checks import positive, whole_number
from softscope.tasks.batch import IGNORED, Batch

OptimizerMaker = Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]

OPTIMIZERS: dict[str, OptimizerMaker] = {
    "adam": lambda parameters, learning_rate: torch.optim.Adam(parameters, lr=learning_rate),
    "adamw": lambda parameters, learning_rate: torch.optim.AdamW(parameters, lr=learning_rate),
    "sgd": lambda parameters, learning_rate: torch.optim.SGD(parameters, lr=learning_rate),
}


@dataclass
class History:
    """Loss and accuracy of a training run, one number per step.

    Attributes:
        loss: Cross-entropy against the labels, including noise, in nats.
        accuracy: Share of answers equal to the label before noise.
        stopped_at: The step at which training stopped because the loss was NaN or infinite; None if it never was.

    Examples:
        >>> History(loss=[2.0, 1.0, 0.5], accuracy=[0.25, 0.5, 1.0]).recent_accuracy(steps=2)
        0.75
    """

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    stopped_at: int | None = None

    def recent_accuracy(self, steps: int = 20) -> float:
        """Average the accuracy over the last `steps` steps, since a single batch is a noisy measurement."""
        last = self.accuracy[-whole_number(steps, "steps", 1) :]
        return sum(last) / len(last)


def train(
    model: nn.Module,
    batches: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    learning_rate: float = 1e-3,
    optimizer: Literal["adam", "adamw", "sgd"] | OptimizerMaker = "adam",
    seed: int = 0,
    on_step: Callable[[int, float, nn.Module], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> History:
    """Minimise the mean cross-entropy of `model(*batch.inputs)` over fresh batches, in place.

    Each step measures loss and accuracy on a batch the model has not seen yet. A NaN or infinite loss stops the run
    before it reaches the weights, and the history records the step.

    Args:
        model: Any module that returns logits (..., classes).
        batches: Function that makes a batch from a generator, which `train` seeds.
        steps: Number of updates.
        learning_rate: Learning rate of the optimizer.
        optimizer: "adam", "adamw", "sgd" (plain), or a function of parameters and learning rate.
        seed: Decides the batches. The model decides its own initial weights; dropout, if any, uses torch's
            random state.
        on_step: Called with step, loss and model after the backward pass and before the update.
        progress: Called with the number of steps done and `steps`.

    Examples:
        >>> from softscope.tasks import RecallModel, recall_batch
        >>> model = RecallModel(d=32, vocabulary=4)
        >>> batches = lambda generator: recall_batch(8, pairs=4, generator=generator)
        >>> history = train(model, batches, steps=8, learning_rate=1e-2)
        >>> history.loss[-1] < history.loss[0], history.stopped_at
        (True, None)
    """
    steps = whole_number(steps, "steps", 1)
    learning_rate = positive(learning_rate, "learning_rate", "1e-3 suits the models here")
    update = _optimizer(optimizer)(model.parameters(), learning_rate)
    generator = torch.Generator(device=next(model.parameters()).device).manual_seed(seed)
    history = History()
    for step in range(steps):
        batch = batches(generator)
        logits: Tensor = model(*batch.inputs)
        loss = functional.cross_entropy(logits.flatten(0, -2), batch.target.flatten(), ignore_index=IGNORED)
        history.loss.append(loss.item())
        history.accuracy.append(_accuracy(logits, batch.clean_target))
        if not math.isfinite(history.loss[-1]):
            history.stopped_at = step
            break
        update.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if on_step is not None:
            on_step(step, history.loss[-1], model)
        update.step()
        if progress is not None:
            progress(step + 1, steps)
    return history


def _optimizer(optimizer: str | OptimizerMaker) -> OptimizerMaker:
    if callable(optimizer):
        return optimizer
    if optimizer not in OPTIMIZERS:
        names = ", ".join(f'"{name}"' for name in OPTIMIZERS)
        raise ValueError(
            f"optimizer must be one of {names} or a function, but got {optimizer!r}; "
            f"a function takes the parameters and the learning rate"
        )
    return OPTIMIZERS[optimizer]


def _accuracy(logits: Tensor, clean_target: Tensor) -> float:
    asked = clean_target != IGNORED
    return (logits.argmax(-1) == clean_target)[asked].float().mean().item()
