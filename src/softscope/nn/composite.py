"""Attention with its weights written down: for those who want to see them, and for dropout, which changes them.

The logits are those of `softscope.attention`; the maps are the public ones.
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
    """The output, and the weights (…, heads, n, m) after dropout.

    Args:
        dropout: how probably a weight becomes 0; the others grow by 1/(1 − dropout).
        Others as for `softscope.attention`; as many key heads as query heads.
    """
    # Half-precision logits lose whole units where they are large: float32 inside, whatever autocast would do.
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
    """Autocast off, on devices that know it."""
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


def _logits(q: Tensor, k: Tensor, scale: float | Tensor, softcap: float | None) -> Tensor:
    logits = q @ k.transpose(-1, -2)
    logits = logits * (scale[:, None, None].to(q.dtype) if isinstance(scale, Tensor) else scale)
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)


def _read(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """Which keys a mask shows, and what it adds to them."""
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
