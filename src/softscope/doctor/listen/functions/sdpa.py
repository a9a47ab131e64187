"""`torch.nn.functional.scaled_dot_product_attention`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Options, autocast
from softscope.doctor.listen import reasons
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, heads_axis, mask_axes, positions
from softscope.doctor.listen.patches import Patch, context, told


def patches() -> list[Patch]:
    """One function; PyTorch's own modules and Hugging Face's look it up by name."""
    return [Patch(functional, "scaled_dot_product_attention", told(describe))]


def describe(
    output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> ObservedCall:
    """Describe the call. As in PyTorch, causal counts from the first key even with more keys than queries."""
    del enable_gqa  # fewer key heads already show it
    if query.is_nested or key.is_nested:
        raise UnseenError(reasons.NESTED)
    # The tensors the kernel receives: autocast may have converted them to half precision.
    q, k, v = autocast({"q": query.detach(), "k": key.detach(), "v": value.detach()}).values()
    shape = (*query.shape[:-1], key.shape[-2])
    known = context()
    q, k, v = (heads_axis(x, known.get("heads")) for x in _same_axes(q, k, v))
    batch, kv_heads = (max(x.shape[axis] for x in (k, v)) for axis in (0, 1))  # each of them may be shared
    batch, heads = max(batch, q.shape[0]), max(q.shape[1], kv_heads)
    q = q.expand(batch, heads, -1, -1)
    k, v = (x.expand(batch, kv_heads, -1, -1) for x in (k, v))

    def gradient(grad: Tensor) -> Tensor:
        return heads_axis(grad, known.get("heads"))

    options = Options(
        scale=float(q.shape[-1] ** -0.5 if scale is None else scale),
        positions=positions(q.shape[2], 0, q),
        right=0 if is_causal else None,
        mask=mask_axes(None if attn_mask is None else attn_mask.detach(), shape, known.get("heads")),
    )
    return ObservedCall(
        kind=known.get("kind", "sdpa"), result=output, gradient=gradient, heads=heads, n=q.shape[2], m=k.shape[2],
        q=q, k=k, v=v, options=options, kv_heads=known.get("kv_heads", k.shape[1]), dropout=float(dropout_p),
        dtype=dtype_of(q), causal=bool(is_causal or known.get("causal")),
    )  # fmt: skip


def _same_axes(*tensors: Tensor) -> list[Tensor]:
    """Tensors with as many axes each; those before the heads are broadcast, because they become one."""
    most = max(x.ndim for x in tensors)
    padded = [x.reshape((1,) * (most - x.ndim) + x.shape) for x in tensors]
    if most <= 4:
        return padded
    batch = torch.broadcast_shapes(*(x.shape[:-3] for x in padded))  # type: ignore[no-untyped-call]
    return [x.expand(*batch, *x.shape[-3:]) for x in padded]
