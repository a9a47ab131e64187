"""A prognosis that is measured: copies of a model train on, untreated and treated, and the held-out loss is compared.

Readings tell how a head is now. Whether it would free itself depends on the task, the data and the optimizer as well.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal

from softscope._arguments.checks import whole_number
from softscope._text import Text
from softscope.doctor.read.effect import effect

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import Tensor, nn

    from softscope.doctor.read.effect import Effect

# Shares of what the treatment brings: below the first, a model did not recover; from the second on, it needs none.
LITTLE, MOST = 0.1, 0.9

NOT_MEASURED = Text(
    zh="接着训练能不能恢复，这里没有测量。", en="Whether it would recover with more training was not measured."
)

CourseName = Literal["stuck", "slow", "recovers", "treatment-fails", "improves", "no-better", "open"]


@dataclasses.dataclass(frozen=True)
class Arm:
    """A copy of the model after training on: its held-out loss, how that changed, and the copy itself."""

    loss: float
    change: Effect
    model: Any


@dataclasses.dataclass(frozen=True)
class Prognosis:
    """What became of a model in `steps` more steps.

    Attributes:
        steps: How many steps both copies trained.
        loss: The held-out loss before.
        untreated: The copy that was only trained on.
        treated: The copy that was treated first; None if there was no treatment.
    """

    steps: int
    loss: float
    untreated: Arm
    treated: Arm | None = None

    @property
    def course(self) -> CourseName:
        """What the losses show, as a name for programs; "open" if they do not settle it."""
        arms = [self.untreated] if self.treated is None else [self.untreated, self.treated]
        if any(math.isfinite(arm.loss) and math.isnan(arm.change.error) for arm in arms):
            return "open"  # a single part has no standard error
        alone = self.untreated.change
        if self.treated is None:
            return "improves" if alone.helps else "no-better"
        if not self.treated.change.helps:
            return "treatment-fails"
        share = alone.change / self.treated.change.change
        if not share >= LITTLE:  # NaN, too: its loss is no longer finite
            return "stuck"
        if not alone.helps:
            return "open"
        return "slow" if share < MOST else "recovers"

    @property
    def said(self) -> Text:
        """What was measured, in one or two sentences."""
        from_, alone = _shown(self.loss), _shown(self.untreated.loss)
        treated = "" if self.treated is None else _shown(self.treated.loss)
        return _SAID[self.course].format(steps=f"{self.steps:,}", before=from_, alone=alone, treated=treated)


_TREATED = Text(
    zh="照处方治疗，同样的步数降到 {treated}。", en=" With the prescription it fell to {treated} in as many steps."
)


def _and_treated(zh: str, en: str) -> Text:
    return Text(zh=zh + _TREATED.zh, en=en + _TREATED.en)


_SAID: dict[CourseName, Text] = {
    "stuck": _and_treated(
        zh="不治疗接着训练，{steps} 步内没有恢复：损失从 {before} 到 {alone}。",
        en="Trained on without treatment, it did not recover within {steps} steps: the loss went from {before} to "
        "{alone}.",
    ),
    "slow": _and_treated(
        zh="不治疗接着训练，恢复得慢：{steps} 步里损失从 {before} 降到 {alone}。",
        en="Trained on without treatment, it recovers slowly: in {steps} steps the loss fell from {before} to {alone}.",
    ),
    "recovers": _and_treated(
        zh="不治疗，接着训练也能恢复：{steps} 步里损失从 {before} 降到 {alone}。",
        en="Trained on without treatment, it recovers by itself: in {steps} steps the loss fell from {before} to "
        "{alone}.",
    ),
    "treatment-fails": Text(
        zh="照处方治疗，{steps} 步内没有见效：损失从 {before} 到 {treated}；不治疗则到 {alone}。",
        en="The prescription did not help within {steps} steps: the loss went from {before} to {treated}; without it, "
        "to {alone}.",
    ),
    "improves": Text(
        zh="接着训练 {steps} 步，损失从 {before} 降到 {alone}。",
        en="Trained on for {steps} steps, the loss fell from {before} to {alone}.",
    ),
    "no-better": Text(
        zh="接着训练 {steps} 步，没有好转：损失从 {before} 到 {alone}。",
        en="Trained on for {steps} steps, it did not improve: the loss went from {before} to {alone}.",
    ),
    "open": Text(
        zh="接着训练了 {steps} 步，但留出的数据太少，看不出能不能恢复。",
        en="Trained on for {steps} steps, but there is too little held-out data to tell whether it recovers.",
    ),
}


def prognosis(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Callable[[int], Any],
    held_out: Any,
    *,
    steps: int,
    loss: Callable[[Any, Any], Tensor] | None = None,
    treat: Callable[[nn.Module], object] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Prognosis:
    """Train copies of the model on for `steps` steps, untreated and treated, and compare the loss on held-out data.

    Both copies go on with the optimizer's state and see the same batches. Model, optimizer and torch's random state are
    left as they were. It costs 2·steps training steps: one run of each copy, with standard errors over held-out parts.

    Args:
        model: Any module, outside of a probe.
        optimizer: The one that trains it.
        batches: Makes the batch of a step, as `examine` takes it; called once per step and copy.
        held_out: A batch to measure on, or a list of such; cut into parts along the first axis.
        steps: How many steps.
        loss: Computes the loss from output and batch. If None, the output's own `loss` is used.
        treat: Treats a copy in place, such as a prescription's `apply`. If None, no copy is treated.
        progress: Called with the share that is done.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(4, 1)
        >>> batch = torch.linspace(-1, 1, 32).reshape(8, 4)
        >>> found = prognosis(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda step: batch, batch, steps=5,
        ...                   loss=lambda output, batch: (output - batch.sum(-1, keepdim=True)).square().mean())
        >>> found.untreated.loss < found.loss, found.treated
        (True, None)
    """
    import torch

    from softscope.doctor.examine import BrokenLossError, Given, WrongLossError, training_pass
    from softscope.doctor.trial.head_trial import parts_of

    steps = whole_number(steps, "steps", 1)
    parts = parts_of(held_out)
    try:
        before = _losses(Given(model, parts, loss))
    except WrongLossError as error:
        raise TypeError(
            f"loss must return a tensor with one number, but got {error}; pass loss=, a function of output and batch"
        ) from None
    treatments = [lambda _: None] if treat is None else [lambda _: None, treat]
    arms = []
    for i, treatment in enumerate(treatments):
        one, its = _copied(model, optimizer)
        treatment(one)
        given = Given(one, parts, loss, its)
        devices = sorted({p.device.index or 0 for p in one.parameters() if p.device.type == "cuda"})
        with torch.random.fork_rng(devices=devices):
            for step in range(steps):
                try:
                    training_pass(given, batches(step))
                except BrokenLossError:  # it diverged: the rest of the steps would not bring it back
                    break
                progress((i + (step + 1) / steps) / len(treatments))
        arms.append(_arm(one, before, _losses(given)))
    return Prognosis(steps, sum(before) / len(before), *arms)


def _copied(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Copy both at once, so that the copied optimizer holds the copied parameters."""
    try:
        return copy.deepcopy((model, optimizer))
    except Exception as error:
        raise ValueError(
            f"model and optimizer must allow copy.deepcopy, but it raised {type(error).__name__}: {error}; detach "
            f"what cannot be copied, such as a probe or tensors kept with their graph"
        ) from error


def _losses(given: Any) -> list[float]:
    from softscope.doctor.examine import forward_loss
    from softscope.doctor.trial.untouched import untouched

    with untouched(given.model):
        return [forward_loss(given, part) for part in given.batches]


def _arm(model: nn.Module, before: list[float], after: list[float]) -> Arm:
    """Compare part by part: what is common to both cancels."""
    return Arm(sum(after) / len(after), effect([x - y for x, y in zip(after, before, strict=True)]), model)


def _shown(loss: float) -> str:
    return f"{loss:.2f}" if math.isfinite(loss) else "NaN"
