"""Attention as a function with PyTorch's signature."""

from torch import Tensor

import softscope
from softscope._arguments.checks import between, flag
from softscope.nn import composite


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Drop-in for torch's `scaled_dot_product_attention`: softmax(scale · query·keyᵀ + attn_mask) · value.

    A query that sees no key gets zeros, whatever hides the keys.

    Args:
        query: Queries, (…, heads, n, d).
        key: Keys, (…, heads, m, d).
        value: Values, (…, heads, m, dv).
        attn_mask: Boolean (True = attend) or additive floats of any dtype, broadcastable to (…, heads, n, m).
            An additive entry of −inf, or at or below finfo.min/2, hides the key.
        dropout_p: Probability that a weight becomes 0. As in PyTorch, it applies outside of training too. Above 0,
            all weights are materialised.
        is_causal: Query i sees the keys j ≤ i, also where n ≠ m. Cannot be combined with attn_mask.
        scale: Factor on query·keyᵀ, 1/√d by default.
        enable_gqa: Allow fewer key and value heads than query heads; each then serves a group of query heads.

    >>> import torch, softscope.nn
    >>> q = k = v = torch.eye(3)[None]
    >>> softscope.nn.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0]
    tensor([1., 0., 0.])
    """
    plain = type(dropout_p) is float and dropout_p == 0.0 and type(is_causal) is bool
    if plain and not (is_causal and attn_mask is not None) and _fit(query, key, value, enable_gqa):
        return softscope.attention(query, key, value, scale=scale, causal=is_causal, mask=attn_mask)
    if flag(is_causal, "is_causal") and attn_mask is not None:
        raise ValueError(
            "attn_mask must be None when is_causal is True, but got both; put the causal triangle into the mask"
        )
    query, key, value = _heads(query, key, value, flag(enable_gqa, "enable_gqa"))
    dropout = between(dropout_p, "dropout_p", 0.0, 1.0, "0.0 drops nothing")
    if not dropout:
        output: Tensor = softscope.attention(query, key, value, scale=scale, causal=is_causal, mask=attn_mask)
        return output
    group = query.shape[-3] // key.shape[-3] if query.ndim > 2 else 1
    if group > 1:
        key, value = (x.repeat_interleave(group, dim=-3) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return composite.attend(query, key, value, dropout=dropout, scale=scale, causal=is_causal, mask=attn_mask)[0]


def _fit(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> bool:
    """Tell at a glance whether the heads fit as they are; this is asked for every token that a model generates."""
    if not type(query) is type(key) is type(value) is Tensor or not query.ndim == key.ndim == value.ndim == 4:
        return False
    return grouped is True or (grouped is False and query.shape[1] == key.shape[1])


def _heads(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tensors with matching heads; a single query head broadcasts to all key heads."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor) or x.ndim < 2:
            came = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a tensor (…, heads, n, d), but got {came}; convert or reshape it")
    heads, kv_heads = (x.shape[-3] if x.ndim > 2 else 1 for x in (query, key))
    if grouped or heads == kv_heads or kv_heads == 1:
        return query, key, value
    if heads != 1:
        raise ValueError(
            f"query and key must have the same number of heads, but got {heads} and {kv_heads}; "
            f"pass enable_gqa=True if each key head serves a group of query heads"
        )
    return query.expand(*query.shape[:-3], kv_heads, *query.shape[-2:]), key, value
