"""Attention with tensor operations in O(n) memory: one tile of rows at a time, forward and backward.

The backward pass recomputes each tile, so no logits are kept. If it is itself differentiated, it materialises all
logits at once.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._backends.torch import dense_attention
from softscope._backends.torch.engine_memory import transformed

if TYPE_CHECKING:
    from softscope._arguments.attention import Call


def output(call: Call, additive: Any) -> Tensor:
    """Compute the weighted sum of the values; `call` has one key head per query head."""
    if torch.compiler.is_compiling() or len(call.tiles()) == 1:
        return dense_attention.output(call, additive)
    if transformed():  # it sees every operation, so there is nothing to recompute
        return _tile_by_tile(call, additive)
    weights = () if additive is None else tuple(additive)
    options = call.options
    flat = (call.q, call.k, call.v, options.mask, options.scale, options.sink, options.alpha, *weights)
    return Tiled.apply(call, len(weights), *flat)  # type: ignore[no-untyped-call]


def _tile_by_tile(call: Call, additive: Any) -> Tensor:
    return torch.cat([dense_attention.output(call.of_rows(rows), additive) for rows in call.tiles()], dim=-2)


class Tiled(torch.autograd.Function):
    """The tensors of a call, plus the weights of additive attention → the output."""

    @staticmethod
    def forward(ctx: Any, call: Call, weights: int, *flat: Any) -> Tensor:
        ctx.call, ctx.weights = call, weights
        ctx.others = [None if isinstance(x, Tensor) else x for x in flat]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in flat))
        additive = flat[-weights:] if weights else None
        return _tile_by_tile(call, additive)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        flat = [other if x is None else x for x, other in zip(ctx.saved_tensors, ctx.others, strict=True)]
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[2:]) if needed]
        again = torch.is_grad_enabled()  # the backward pass is itself differentiated
        if not again:
            flat = [x.detach().requires_grad_(i in wanted) if isinstance(x, Tensor) else x for i, x in enumerate(flat)]
        q, k, v, mask, scale, sink, alpha, *weights = flat
        options = dataclasses.replace(ctx.call.options, mask=mask, scale=scale, sink=sink, alpha=alpha)
        call = dataclasses.replace(ctx.call, q=q, k=k, v=v, options=options)
        found: list[Any] = [None] * len(flat)
        for rows in [slice(None)] if again else call.tiles():
            with torch.enable_grad():
                part = dense_attention.output(call.of_rows(rows), weights or None)
                inputs = [flat[i] for i in wanted]
                gradients = torch.autograd.grad(part, inputs, gradient[..., rows, :], create_graph=again)
            for i, g in zip(wanted, gradients, strict=True):
                found[i] = g if found[i] is None else found[i] + g
        return None, None, *found
