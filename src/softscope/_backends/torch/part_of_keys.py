"""Attention over some of the keys: what joins to the whole row's, and the gradients where the whole row is known.

    p = exp(x − m)/z   dp = grad·vᵀ   ds = p·(dp − Σ grad·out)   dq = ds·k   dk = dsᵀ·q   dv = pᵀ·grad

m, z and out are those of the whole row, so the parts' shares of dq add up, and dk and dv of a part are already whole.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softscope._backends.reference.partition import State
from softscope._backends.torch import attention, dense_attention, engine_attention

if TYPE_CHECKING:
    from softscope._arguments.attention import Call


def attended(call: Call, statistics: bool) -> tuple[Tensor, State, Tensor]:
    """Compute the output, each row's state and its largest score.

    Without statistics, only c, m and r of the state are right, and n is 0 for no key and 1 for some: all that is needed
    to merge the outputs of parts.
    """
    if statistics or not engine_attention.offers(call, None):
        out, (state, highest) = attention.attend(call, None, True)
        return out, state, highest
    assert call.v is not None
    out, numbers = engine_attention.attended(call.q, call.k, call.v, *engine_attention.flat_options(call), False)
    c, m, r = (numbers[..., i] for i in (1, 2, 3))
    nothing = torch.zeros_like(m)
    return out, State((m != -torch.inf).to(m.dtype), c, m, r, nothing, nothing, nothing), m


def gradients(call: Call, gradient: Tensor, out: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute the call's dq, dk, dv and, by head, its share of the scale's gradient.

    Args:
        call: The queries, some of the keys, and their values; with one scale per head, (heads, 1, 1).
        gradient: The gradient of the output, like `out`.
        out: The output for all keys.
        numbers: Each row's state for all keys and its largest score, (…, heads, rows, 8), without the sink.
    """
    assert call.v is not None
    if engine_attention.offers(call, None):
        options = engine_attention.flat_options(call)
        dq, dk, dv, dscale = engine_attention.gradients(gradient, out, numbers, call.q, call.k, call.v, *options)
        dq, dk, dv = (x.sum_to_size(like.shape) for x, like in ((dq, call.q), (dk, call.k), (dv, call.v)))
        return dq, dk, dv, engine_attention.sum_by_head(dscale)
    return by_tensors(call, gradient, out, numbers)


def by_tensors(call: Call, gradient: Tensor, out: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute the same with tensor operations, some rows at a time."""
    assert call.v is not None
    inputs = [x.detach().requires_grad_() for x in (call.q, call.k, call.v, call.options.scale)]
    found = [torch.zeros_like(x) for x in inputs]
    given = dataclasses.replace(
        call, q=inputs[0], k=inputs[1], v=inputs[2], options=dataclasses.replace(call.options, scale=inputs[3])
    )
    for rows in call.tiles():
        with torch.enable_grad():
            pull = _pull(given.spread().of_rows(rows), *(x[..., rows, :] for x in (gradient, out, numbers)))
            for total, part in zip(found, torch.autograd.grad(pull, inputs), strict=True):
                total += part
    dq, dk, dv, dscale = found
    return dq, dk, dv, dscale.reshape(-1)


def _pull(call: Call, gradient: Tensor, out: Tensor, numbers: Tensor) -> Tensor:
    """Return a number whose gradients are those of the call, with the weights as constants."""
    assert call.v is not None
    _, x, visible = dense_attention.logits(call, None, call.q.dtype)
    with torch.no_grad():
        c, m, r = (numbers[..., i, None] for i in (1, 2, 3))
        sink = -torch.inf if call.options.sink is None else call.options.sink[..., None]
        top = m.clamp(min=sink)
        z = (c + r) * torch.exp(m - top) + torch.exp(sink - top)
        p = torch.where(visible, torch.exp(x - top) / z, 0.0).to(x.dtype)
        mean = (gradient * out).sum(dim=-1, keepdim=True)
        ds = p * (gradient @ call.v.transpose(-1, -2) - mean)
    through_values = dense_attention.weighted_sum(p, visible, call.v) * gradient
    return (torch.where(visible, x, 0.0) * ds).sum() + through_values.sum()
