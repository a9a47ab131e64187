"""What is left of the gradient when softmax saturates: its own slope, and what a cross-entropy behind it passes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softscope as ss

if TYPE_CHECKING:
    from numpy.typing import NDArray


def slope(logits: list[float], entry: int) -> float:
    """∂s/∂x of one entry with respect to its own logit, exact even near one-hot, where 1 − s would cancel.

    >>> f"{slope([200.0, 250.0], 1):.2e}"
    '1.93e-22'
    """
    others = np.delete(np.array(logits), entry)
    return float(ss.softmax(logits)[entry] * np.exp(ss.logsumexp(others) - ss.logsumexp(logits)))


def cross_entropy_gradient(logits: list[float], target: int) -> NDArray[np.float64]:
    """The gradient that reaches the logits from a cross-entropy, by autograd."""
    import torch

    x = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    ss.cross_entropy(x, torch.tensor([target])).backward()
    assert x.grad is not None
    return np.asarray(x.grad[0])
