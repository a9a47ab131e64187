"""Scalable softmax: logits grow with the logarithm of the number of visible keys, so that long rows stay sharp."""

import math

import torch
from torch import Tensor

from softscope.nn import masks


def by_length(q: Tensor, gain: Tensor, length: float, counts: Tensor) -> Tensor:
    """Multiply each row of q by gain·log n / log length.

    The logits then are s·log n · scale·q·k with s = gain / log length.

    Args:
        q: Queries, (…, heads, n, d).
        gain: One gain per head.
        length: Row length at which the logits stay unchanged, at gain 1.
        counts: Number of keys each row sees, broadcastable to (…, heads, n). A row with one key has no choice to make.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    factor = counts.clamp(min=1).to(dtype).log() / math.log(length)
    return q * (gain.to(dtype)[:, None] * factor).to(q.dtype)[..., None]


def seen_keys(mask: Tensor | None, *, causal: bool, n: int, m: int, device: torch.device) -> Tensor:
    """Count how many of m keys each of n queries sees; the result broadcasts to (…, heads, n).

    Args:
        mask: Boolean (True = attend) or additive floats, broadcastable to (…, heads, n, m).
        causal: Query i sees the keys j ≤ i.
    """
    shown = masks.causal(n, m, device) if causal else torch.ones(n, m, dtype=torch.bool, device=device)
    if mask is not None:
        shown = shown & masks.shown(mask)
    return shown.sum(dim=-1)
