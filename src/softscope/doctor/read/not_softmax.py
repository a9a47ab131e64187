"""What stands between q·k and the weights and does not belong there: a dropout, or a second softmax."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def dropped(logits: Tensor, scores: Tensor, visible: Tensor) -> Tensor:
    """The share of visible logits that are exactly 0 although q·k is not, (B, heads, rows).

    Rounding gives an exact 0 once in millions; a dropout before the softmax gives its rate. A model that subtracts the
    maximum itself, as GPT-OSS does, has a 0 there, and nothing above it.
    """
    above = logits.masked_fill(~visible, -math.inf).amax(dim=-1, keepdim=True) > 0.0
    zero = (logits == 0.0) & (scores != 0.0) & visible & above
    return zero.sum(dim=-1) / visible.sum(dim=-1).clamp_min(1)


def twice(logits: Tensor, visible: Tensor) -> Tensor:
    """Whether each row of logits already is a row of weights, none negative, with a sum of 1: (B, heads, rows).

    >>> x = torch.tensor([[[[0.2, 0.3, 0.5], [1.0, 2.0, 3.0]]]])
    >>> twice(x, torch.ones_like(x, dtype=torch.bool))
    tensor([[[1., 0.]]])
    """
    seen = logits.masked_fill(~visible, 0.0)
    total = seen.sum(dim=-1)
    close = 1e-2 if logits.dtype in (torch.float16, torch.bfloat16) else 1e-4
    several = visible.sum(dim=-1) > 1
    return ((seen >= 0.0).all(dim=-1) & ((total - 1.0).abs() < close) & several).to(total.dtype)
