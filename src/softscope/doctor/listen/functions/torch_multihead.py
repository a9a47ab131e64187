"""`torch.nn.MultiheadAttention`: the path that materialises weights, and the fused calls of eval mode.

The path through `scaled_dot_product_attention` is observed in `sdpa`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Options
from softscope.doctor.listen import reasons
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, positions
from softscope.doctor.listen.patches import Patch, context
from softscope.doctor.listen.wrappers import surrounding, told


def patches() -> list[Patch]:
    """Patches for the function behind the module, and the two fused calls; `followed` shows its matrix products."""
    return [
        Patch(functional, "multi_head_attention_forward", surrounding(_know)),
        Patch(torch, "_transformer_encoder_layer_fwd", told(_layer)),
        Patch(torch, "_native_multi_head_attention", told(_native)),
    ]


def _know(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, *rest: Any, **named: Any
) -> dict[str, Any]:
    del query, key, value, embed_dim
    training = named.get("training", rest[8] if len(rest) > 8 else True)
    dropout = named.get("dropout_p", rest[5] if len(rest) > 5 else 0.0)
    return {"kind": "multihead", "heads": num_heads, "dropout": float(dropout) if training else 0.0}


def take_product(left: Tensor, right: Tensor) -> None:
    """Take scaled queries and keys from the first product; ignore the second, of weights and values."""
    known = context()
    if known.get("kind") != "multihead" or "q" in known:
        return
    heads = known["heads"]

    def four(x: Tensor) -> Tensor:
        return x.detach().reshape(-1, heads, *x.shape[-2:])

    scale = math.sqrt(1.0 / left.shape[-1])
    known.update(q=four(left) / scale, k=four(right.transpose(-2, -1)), scale=scale)


def _native(
    result: Any, query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, weight: Tensor,
    bias: Tensor, out_weight: Tensor, out_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average: bool = True, mask_type: int | None = None,
) -> ObservedCall:  # fmt: skip
    """Describe the module's fused call in eval mode."""
    del value, out_weight, out_bias, need_weights, average
    output = result[0] if isinstance(result, tuple) else result
    return _fused(output, query, key, embed_dim, num_heads, weight, bias, mask, mask_type, "")


def _layer(
    result: Tensor, src: Tensor, embed_dim: int, num_heads: int, weight: Tensor, bias: Tensor, out_weight: Tensor,
    out_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight: Tensor, norm_bias: Tensor,
    *rest: Any,
) -> ObservedCall:  # fmt: skip
    """Describe the fused call of a whole `nn.TransformerEncoderLayer` in eval mode."""
    del out_weight, out_bias, use_gelu
    mask, mask_type = (*rest, None, None)[6:8] if len(rest) > 6 else (None, None)
    if src.is_nested:
        src, mask, mask_type = _padded(src)
    x = functional.layer_norm(src, (embed_dim,), norm_weight, norm_bias, eps) if norm_first else src
    return _fused(result, x, x, embed_dim, num_heads, weight, bias, mask, mask_type, ".self_attn")


def _padded(nested: Tensor) -> tuple[Tensor, Tensor, int]:
    """Convert a nested tensor to (batch, n, d), and tell which positions are padding."""
    lengths = torch.tensor([x.shape[0] for x in nested.unbind()], device=nested.device)
    padded = nested.to_padded_tensor(0.0)
    return padded, torch.arange(padded.shape[1], device=nested.device) >= lengths[:, None], 1


def _fused(
    output: Tensor, query: Tensor, key: Tensor, embed_dim: int, heads: int, weight: Tensor, bias: Tensor,
    mask: Tensor | None, mask_type: int | None, below: str,
) -> ObservedCall:  # fmt: skip
    """Project q and k again, since the fused call does not show them. This path has no gradient."""
    if query.is_nested or key.is_nested:
        raise UnseenError(reasons.NESTED)

    def project(x: Tensor, part: int) -> Tensor:
        rows = slice(part * embed_dim, (part + 1) * embed_dim)
        y = functional.linear(x.detach(), weight.detach()[rows], bias.detach()[rows])
        return y.reshape(*y.shape[:-1], heads, -1).transpose(-3, -2)

    with torch.no_grad():
        q, k = project(query, 0), project(key, 1)
    # True hides a key. Mask type 0 is (n, m), 1 is (batch, m), 2 is (batch, heads, n, m).
    shown = None if mask is None else ~mask if mask.dtype == torch.bool else mask == 0
    if shown is not None and mask_type == 1:
        shown = shown[:, None, None, :]
    return ObservedCall(
        kind="multihead", result=output.detach(), gradient=_none, heads=heads, n=q.shape[2], m=k.shape[2], q=q, k=k,
        options=Options(q.shape[-1] ** -0.5, positions(q.shape[2], 0, q), mask=shown), kv_heads=heads,
        dtype=dtype_of(q), below=below,
    )  # fmt: skip


def _none(grad: Tensor) -> Tensor:
    return grad
