"""Differentiable attention on tensors with all logits materialised, for as many rows as fit in memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.seen import seen
from softscope._backends.torch.dtypes import like, row_dtype, widest
from softscope._backends.torch.maps import softmax, state
from softscope._backends.torch.tensor_entmax import entmax
from softscope._backends.torch.tensor_jacobian import trace

if TYPE_CHECKING:
    from softscope._arguments.attention import Call
    from softscope._backends.reference.partition import State


def logits(call: Call, additive: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores before the cap, the logits, and which keys are visible, all (…, heads, rows, m)."""
    q, k = call.q.to(dtype), call.k.to(dtype)
    if additive is None:
        scores = _products(q, k) * like(call.options.scale, dtype)
    else:
        scores = _additive_scores(q, k, *(like(w, dtype) for w in additive))
    x = scores if call.options.softcap is None else call.options.softcap * torch.tanh(scores / call.options.softcap)
    shown, bias = call.visible_and_bias()
    if bias is not None:
        x = x + bias.to(dtype)
    visible = x.detach() != -math.inf
    if shown is not None:
        visible = visible & shown
    return scores.expand(visible.shape), x.expand(visible.shape), visible


def _broken(x: Tensor) -> Tensor | None:
    """Return where x is NaN or infinite, or None if it is finite everywhere.

    It checks only on the CPU in eager mode. Elsewhere a check would cost a synchronisation or a graph break, or is
    impossible; there 0·NaN stays NaN, as in PyTorch's own attention.
    """
    if x.device.type != "cpu" or not seen(x) or bool(torch.isfinite(x).all()):
        return None
    return ~torch.isfinite(x)


def _products(q: Tensor, k: Tensor) -> Tensor:
    """Compute q·k for every query and key; a NaN in a key hidden from a query stays out of its gradient, too."""
    broken_q, broken_k = _broken(q.detach()), _broken(k.detach())
    if broken_q is None and broken_k is None:
        return q @ k.transpose(-1, -2)
    clean_q = q if broken_q is None else q.masked_fill(broken_q, 0.0)
    clean_k = k if broken_k is None else k.masked_fill(broken_k, 0.0)
    raw = q.detach() @ k.detach().transpose(-1, -2)
    lost = torch.zeros((), dtype=torch.bool)
    for broken, axis in ((broken_q, -1), (broken_k, -2)):
        if broken is not None:
            lost = lost | broken.any(dim=-1).unsqueeze(axis)
    return torch.where(lost, raw, clean_q @ clean_k.transpose(-1, -2))


def _additive_scores(q: Tensor, k: Tensor, w_q: Tensor, w_k: Tensor, v_a: Tensor) -> Tensor:
    """Compute v_a·tanh(q·w_q + k·w_k), one hidden unit at a time, to avoid an (n, m, hidden) array."""
    left, right = q @ w_q, k @ w_k
    total = left.new_zeros(())
    for h in range(v_a.shape[0]):
        total = total + v_a[h] * torch.tanh(left[..., :, None, h] + right[..., None, :, h])
    return total


def weights(x: Tensor, visible: Tensor, sink: Any, alpha: Any) -> Tensor:
    """Compute the weights over the keys; rows that see no key get zeros and pass no gradient back."""
    if isinstance(alpha, Tensor) or alpha != 1.0:
        return entmax(x, _for_rows(alpha, x), 1.0, visible)
    if sink is None:
        return softmax(x, 1.0, visible)
    return softmax(with_column(x, sink), 1.0, with_column(visible, True))[..., :-1]


def _for_rows(alpha: Any, x: Tensor) -> Any:
    """Return one alpha per head, (heads, 1, 1), as one per row of x with the axis kept; a number as it is."""
    return alpha.to(widest(x)).expand(*x.shape[:-1], 1) if isinstance(alpha, Tensor) else alpha


def with_column(x: Tensor, value: Any) -> Tensor:
    """Append the sink's column, as one more key."""
    column = value.to(x.dtype) if isinstance(value, Tensor) else x.new_tensor(value)
    return torch.cat([x, column[..., None].expand(*x.shape[:-1], 1)], dim=-1)


def output(call: Call, additive: Any) -> Tensor:
    """Compute the weighted sum of the values, in q's dtype."""
    dtype = row_dtype(call.q)
    _, x, visible = logits(call, additive, dtype)
    assert call.v is not None
    return weighted_sum(weights(x, visible, call.options.sink, call.options.alpha), visible, call.v.to(dtype)).to(
        call.q.dtype
    )


def weighted_sum(p: Tensor, visible: Tensor, v: Tensor) -> Tensor:
    """Compute p·v so that hidden keys cannot affect a query, not even by a NaN in v (0·NaN is NaN)."""
    broken = _broken(v.detach())
    if broken is None:
        return p @ v
    seen = visible.to(v.dtype) @ broken.to(v.dtype) > 0.0
    return (p @ v.masked_fill(broken, 0.0)).masked_fill(seen, math.nan)


def partition(call: Call, additive: Any) -> tuple[State, Tensor]:
    """Return every row's state in float64, and its largest visible score before cap and mask."""
    scores, x, visible = logits(call, additive, row_dtype(call.q))
    found, _ = state(x, 1.0, visible)
    if scores.shape[-1] == 0:
        return found, found.m
    return found, scores.masked_fill(~visible, -math.inf).amax(dim=-1).to(widest(x))


def support(call: Call, additive: Any) -> dict[str, Tensor]:
    """Return the statistics of sparse rows; see `reference.attention.support_readings`."""
    _, x, visible = logits(call, additive, widest(call.q))
    alpha = _for_rows(call.options.alpha, x)
    p = entmax(x, alpha, 1.0, visible)
    hidden = x.masked_fill(~visible, -math.inf)
    some = visible.any(dim=-1)
    if x.shape[-1]:
        # One entry gives both terms: at ties, two maxima could each have its own derivative.
        top = hidden.detach().argmax(dim=-1, keepdim=True)
        peak = p.gather(-1, top).squeeze(-1).masked_fill(~some, 1.0)
        beta = alpha.squeeze(-1) - 1.0 if isinstance(alpha, Tensor) else alpha - 1.0
        tau = beta * x.gather(-1, top).squeeze(-1) - peak**beta
    else:
        tau = peak = x.new_zeros(x.shape[:-1])
    positive = p.masked_fill(p == 0.0, 1.0)
    readings = {
        "tau": tau,
        "entropy": -(positive * torch.log(positive)).sum(dim=-1),
        "collision": (p * p).sum(dim=-1),
        "peak": peak,
        "jacobian_trace": trace(p, alpha),
    }
    return {name: value.masked_fill(~some, math.nan) for name, value in readings.items()} | {
        "size": (p > 0.0).sum(dim=-1)
    }
