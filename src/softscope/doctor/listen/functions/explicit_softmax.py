"""An explicit softmax over a matrix of scores: `torch.softmax`, `F.softmax`, `Tensor.softmax`.

The weights are known and their gradient is observed directly. q and k are known only if a surrounding call supplies
them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Options
from softscope.doctor.listen.observed_call import ObservedCall, dtype_of, positions
from softscope.doctor.listen.patches import Patch, context, told


def patches() -> list[Patch]:
    """The three entry points of one operation; a nested call is reported once."""
    return [
        Patch(torch, "softmax", told(describe)),
        Patch(functional, "softmax", told(describe)),
        Patch(torch.Tensor, "softmax", told(describe)),
    ]


def describe(
    weights: Tensor,
    input: Tensor,  # noqa: A002  (torch's own name)
    dim: int | None = None,
    *_: Any,
    **named: Any,
) -> ObservedCall | None:
    """Describe the call if it looks like attention.

    That is a softmax over the last axis of (batch, heads, n, m). Three axes, (batch·heads, n, m) or (batch, n, m),
    count only if the matrix is square or the caller knows its heads: the softmax of a classifier or router has three
    axes too.
    """
    dim = named.get("axis", dim)
    if dim is None or not isinstance(input, Tensor) or weights.is_nested or weights.numel() == 0:
        return None
    if dim not in (-1, weights.ndim - 1) or weights.ndim not in (3, 4):
        return None
    known = context()
    shape = tuple(weights.shape)
    if weights.ndim == 4:
        full = shape
    else:
        heads = known.get("heads")
        if heads is None and shape[-1] != shape[-2]:
            return None
        heads = heads if heads is not None and shape[0] % heads == 0 else 1
        full = (shape[0] // heads, heads, *shape[-2:])

    def four(x: Tensor) -> Tensor:
        return x.reshape(full)

    q, k = known.get("q"), known.get("k")
    return ObservedCall(
        kind=known.get("kind", "softmax"), result=weights, gradient=four, heads=full[1], n=full[2], m=full[3],
        options=Options(known.get("scale", float("nan")), positions(full[2], 0, input)),
        q=q, k=k, logits=four(input.detach()), weights=four(weights.detach()),
        kv_heads=known.get("kv_heads", full[1]), dropout=known.get("dropout", 0.0), fused=False,
        causal=known.get("causal", False),
        dtype=dtype_of(input) if q is None else dtype_of(q),
    )  # fmt: skip
