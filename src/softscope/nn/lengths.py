"""Scalable softmax: logits that grow with the logarithm of how many keys a query sees, so that long rows stay sharp."""

import math

import torch
from torch import Tensor

from softscope.nn import masks


def by_length(q: Tensor, gain: Tensor, length: float, counts: Tensor) -> Tensor:
    """q times gain·log n / log length, row by row: the logits are then s·log n · scale·q·k with s = gain / log length.

    Args:
        q: (…, heads, n, d).
        gain: one for each head.
        length: of a row whose logits stay as they are, at gain 1.
        counts: how many keys each row sees, broadcastable to (…, heads, n). A row of one key has nothing to choose.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    factor = counts.clamp(min=1).to(dtype).log() / math.log(length)
    return q * (gain.to(dtype)[:, None] * factor).to(q.dtype)[..., None]


def seen_keys(mask: Tensor | None, *, causal: bool, n: int, m: int, device: torch.device) -> Tensor:
    """How many of m keys each of n queries sees, broadcastable to (…, heads, n).

    Args:
        mask: boolean (True = attend) or additive floats, broadcastable to (…, heads, n, m).
        causal: query i sees the keys j ≤ i.
    """
    shown = masks.causal(n, m, device) if causal else torch.ones(n, m, dtype=torch.bool, device=device)
    if mask is not None:
        shown = shown & masks.shown(mask)
    return shown.sum(dim=-1)
