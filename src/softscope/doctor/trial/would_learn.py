"""Whether a head would learn if it could: once it is softened, does its gradient point the loss down?

The gradient is taken with respect to a (d, d) matrix Δ between the head's q and k, which stands for whatever a small
change of W_Q and W_K can do to the logits. Chance gives a gradient, too, but another one for each part of the batch. So
the direction comes from one half of the parts and its slope is measured on the other half: only what the halves share
points down.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from softscope.doctor.examine import Given, tensor_loss
from softscope.doctor.read.effect import Effect, effect
from softscope.doctor.trial.intervention import Intervention

if TYPE_CHECKING:
    from torch import Tensor

    from softscope.doctor.trial.intervention import QueriesAndKeys

FEWEST = 4  # parts, two in each half
PASSES = 3.0  # what it costs, in forward passes over the batch


def would_learn(given: Given, site: str, head: int, temperature: float, of: QueriesAndKeys | None) -> Effect | None:
    """The slope of the loss where training would take the softened head; None if it cannot be measured.

    It is the change of the loss per unit by which the logits move (their standard deviation), so negative is down.

    Args:
        given: model, loss, and the parts of the batch.
        site: the head's site.
        head: its index.
        temperature: softens it first.
        of: the second moments of the head's q and k, if they are known.
    """
    if len(given.batches) < FEWEST or of is None:
        return None
    slopes = [_gradient(given, part, site, head, temperature, torch.zeros_like(of.queries)) for part in given.batches]
    halves = [torch.stack(slopes[i::2]).sum(dim=0) for i in (0, 1)]
    sizes = [of.spread(half) / temperature for half in halves]
    if not all(math.isfinite(size) and size > 0.0 for size in sizes):
        return effect([0.0] * len(slopes))  # nothing depends on what it reads
    return effect([-float((slope * halves[1 - i % 2]).sum()) / sizes[1 - i % 2] for i, slope in enumerate(slopes)])


def _gradient(given: Given, part: object, site: str, head: int, temperature: float, mixing: Tensor) -> Tensor:
    """The gradient of one part's loss with respect to Δ, at 0."""
    mixing.requires_grad_()
    with torch.enable_grad(), Intervention(given.model, site, head, temperature, mixing).on():
        loss = tensor_loss(given, part)
    if not loss.requires_grad:
        return torch.zeros_like(mixing)
    (found,) = torch.autograd.grad(loss, [mixing], allow_unused=True)
    return torch.zeros_like(mixing) if found is None else found
