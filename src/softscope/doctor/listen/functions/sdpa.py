"""`torch.nn.functional.scaled_dot_product_attention`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Options, autocast
from softscope.doctor.listen import module_paths, reasons
from softscope.doctor.listen.context_parallel import is_dtensor, shards_here, shared_out
from softscope.doctor.listen.follow.axes import cut, cuts, new_axes
from softscope.doctor.listen.follow.layout import arranged, first_axis
from softscope.doctor.listen.follow.scales import before_scaling
from softscope.doctor.listen.heads import hinted, said_by
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, heads_axis, mask_axes, positions
from softscope.doctor.listen.patches import Patch, context
from softscope.doctor.listen.wrappers import told


def patches() -> list[Patch]:
    """One function; PyTorch's own modules and Hugging Face's look it up by name."""
    return [Patch(functional, "scaled_dot_product_attention", told(describe, lift=shared_out))]


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
    if is_dtensor(query):
        raise UnseenError(reasons.DTENSOR)
    # The tensors the kernel receives: autocast may have converted them to half precision.
    q, k, v = autocast({"q": query.detach(), "k": key.detach(), "v": value.detach()}).values()
    known = context()
    mask = None if attn_mask is None else attn_mask.detach()
    shape = (*query.shape[:-1], key.shape[-2])
    if max(x.ndim for x in (q, k, v)) == 3 and "heads" not in known:
        four = three_axes(query, key, value)
        mask = mask if mask is None or mask.ndim < 3 else four(mask)
        q, k, v = (four(x) for x in _same_axes(q, k, v))
    else:
        four = functools.partial(heads_axis, heads=known.get("heads"))
        mask = mask_axes(mask, shape, known.get("heads"))
        q, k, v = (four(x) for x in _same_axes(q, k, v))
    batch, kv_heads = (max(x.shape[axis] for x in (k, v)) for axis in (0, 1))  # each of them may be shared
    batch, heads = max(batch, q.shape[0]), max(q.shape[1], kv_heads)
    q = q.expand(batch, heads, -1, -1)
    k, v = (x.expand(batch, kv_heads, -1, -1) for x in (k, v))
    given = float(q.shape[-1] ** -0.5 if scale is None else scale)
    q, k, whole = before_scaling(q, k, given, query, key)
    options = Options(
        scale=whole, positions=positions(q.shape[2], 0, q), right=0 if is_causal else None, mask=mask
    )  # fmt: skip
    return ObservedCall(
        kind=known.get("kind", "sdpa"), result=output, gradient=four, heads=heads, n=q.shape[2], m=k.shape[2],
        q=q, k=k, v=v, options=options, kv_heads=known.get("kv_heads", k.shape[1]), dropout=float(dropout_p),
        dtype=dtype_of(q), causal=bool(is_causal or known.get("causal")), shards=shards_here(),
    )  # fmt: skip


def three_axes(query: Tensor, key: Tensor, value: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that brings (X, n, d) into (B, heads, n, d): X may be the batch, or hold the heads, too."""
    module = module_paths.calling()
    size = max(x.shape[0] for x in (query, key, value) if x.ndim == 3)
    axis, heads = first_axis(size, (query, key), hint=hinted(module), said=said_by(module))
    at = cuts([heads])
    batch = tuple(digit for digit in cut(axis, at) if digit not in heads)

    def four(x: Tensor) -> Tensor:
        n, d = new_axes(x.shape[1:])
        if x.shape[0] == 1:  # shared
            return x[None]
        return arranged(x, (axis, n, d), (batch, heads, n, d))

    return four


def _same_axes(*tensors: Tensor) -> list[Tensor]:
    """Tensors with as many axes each; those before the heads are broadcast, because they become one."""
    most = max(x.ndim for x in tensors)
    padded = [x.reshape((1,) * (most - x.ndim) + x.shape) for x in tensors]
    if most <= 4:
        return padded
    batch = torch.broadcast_shapes(*(x.shape[:-3] for x in padded))  # type: ignore[no-untyped-call]
    return [x.expand(*batch, *x.shape[-3:]) for x in padded]
