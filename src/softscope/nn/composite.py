"""Attention with materialised weights, for callers who want to see them and for dropout, which changes them.

It computes the same logits as `softscope.attention` and uses the public maps.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import softscope
from softscope.nn import masks


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    dropout: float = 0.0,
    scale: float | Tensor,
    causal: bool = False,
    mask: Tensor | None = None,
    softcap: float | None = None,
    sink: Tensor | None = None,
    alpha: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return the output, and the weights (…, heads, n, m) after dropout.

    The other arguments are as for `softscope.attention`; there must be as many key heads as query heads.

    Args:
        dropout: Probability that a weight becomes 0; the remaining weights grow by 1/(1 − dropout).
    """
    # Large half-precision logits are off by whole units, so compute in float32 whatever autocast would do.
    with _own_dtypes(q.device.type):
        dtype = torch.promote_types(q.dtype, torch.float32)
        logits = _logits(q.to(dtype), k.to(dtype), scale, softcap)
        visible = masks.causal(q.shape[-2], k.shape[-2], q.device) if causal else None
        if mask is not None:
            shown, added = _read(mask)
            logits = logits if added is None else logits + added.to(dtype)
            visible = shown if visible is None else visible & shown
        weights = _weights(logits, visible, sink, alpha)
        if dropout:
            weights = functional.dropout(weights, dropout)
        return (weights @ v.to(dtype)).to(v.dtype), weights.to(q.dtype)


def _own_dtypes(device: str) -> AbstractContextManager[object]:
    """Turn autocast off on devices that support it."""
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def _logits(q: Tensor, k: Tensor, scale: float | Tensor, softcap: float | None) -> Tensor:
    logits = q @ k.transpose(-1, -2)
    logits = logits * (scale[:, None, None].to(q.dtype) if isinstance(scale, Tensor) else scale)
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)


def _read(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return which keys a mask shows, and what it adds to their logits."""
    if mask.dtype == torch.bool:
        return mask, None
    shown = masks.shown(mask)
    return shown, mask.masked_fill(~shown, 0.0)


def _weights(logits: Tensor, visible: Tensor | None, sink: Tensor | None, alpha: float) -> Tensor:
    found: Any
    if alpha != 1.0:
        found = softscope.entmax(logits, alpha, where=visible)
    elif sink is None:
        found = softscope.softmax(logits, where=visible)
    else:
        column = sink.to(logits.dtype)[:, None, None].expand(*logits.shape[:-1], 1)
        seen = None if visible is None else functional.pad(visible, (0, 1), value=True)
        found = softscope.softmax(torch.cat([logits, column], dim=-1), where=seen)[..., :-1]
    return found
