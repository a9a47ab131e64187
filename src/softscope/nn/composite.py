"""Attention with materialised weights, for callers who want to see them and for dropout, which changes them.

It computes what `softscope.attention` does where that materialises its weights.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import prepare
from softscope._backends.torch import dense_attention


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
    alpha: float | Tensor = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return the output, and the weights (…, heads, n, m) after dropout.

    The other arguments are as for `softscope.attention`; there must be as many key heads as query heads.

    Args:
        dropout: Probability that a weight becomes 0; the remaining weights grow by 1/(1 − dropout).
    """
    # Large half-precision logits are off by whole units, so compute in float32 whatever autocast would do.
    with _own_dtypes(q.device.type):
        dtype = torch.promote_types(q.dtype, torch.float32)
        options: dict[str, Any] = {"scale": scale, "mask": mask, "softcap": softcap, "sink": sink, "alpha": alpha}
        call = prepare(q, k, v, causal=causal, **options)
        _, logits, visible = dense_attention.logits(call, None, dtype)
        weights = dense_attention.weights(logits, visible, call.options.sink, call.options.alpha)
        if dropout:
            weights = functional.dropout(weights, dropout)
        assert call.v is not None
        output = dense_attention.weighted_sum(weights, visible, call.v.to(dtype)).to(v.dtype)
        weights = weights.to(q.dtype)
        return (output[0], weights[0]) if call.single else (output, weights)


def _own_dtypes(device: str) -> AbstractContextManager[object]:
    """Turn autocast off on devices that support it."""
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()
