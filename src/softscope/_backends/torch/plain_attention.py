"""The short way for attention of CPU tensors (batch, heads, n, d) or (heads, n, d), forward and backward.

Generating token by token calls attention for microseconds of work; checking and describing every option takes longer.
So this way takes tensors by address, and leaves to the full one whatever is unusual: sinks, scales for each head,
broadcast batches, gradients of masks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.attention import Call, Options
from softscope._arguments.checks import plain_number
from softscope._backends.engine.attention import FAR, STATE_NUMBERS
from softscope._backends.torch import dense_attention
from softscope._backends.torch.autograd import applied
from softscope._backends.torch.backward import unseen
from softscope._backends.torch.engine_memory import flows, threads, unwatched

if TYPE_CHECKING:
    from softscope._engine import Heads, Sizes, View


def plain_attention(
    q: Any,
    k: Any,
    v: Any,
    scale: Any = None,
    causal: Any = False,
    start: Any = 0,
    window: Any = None,
    mask: Any = None,
    softcap: Any = None,
    statistics: Any = False,
) -> tuple[Tensor, Tensor | None] | None:
    """Compute the output and, if requested, every row's numbers (…, 8).

    None if the full path is needed, which also finds the words for what is wrong.
    """
    found = _engine.heads_of(q, k, v) if unwatched() else None
    if found is None or torch.is_autocast_enabled("cpu") or type(statistics) is not bool:
        return None
    view = _view(found[3], scale, causal, start, window, mask, softcap)
    if view is None:
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        out, state = applied(_Attention, q, k, v, mask, found, view, statistics)
        return out, state
    return _attended(q, found, view, statistics, statistics)


def _view(sizes: Sizes, scale: Any, causal: Any, start: Any, window: Any, mask: Any, softcap: Any) -> View | None:
    """Return how queries see keys, as the engine takes it; None if an option is unusual."""
    factor = 1.0 / math.sqrt(sizes[5]) if scale is None else plain_number(scale)
    cap = 0.0 if softcap is None else plain_number(softcap)
    if not 0.0 < factor < math.inf or not (cap > 0.0 or softcap is None) or cap == math.inf:
        return None
    if type(causal) is not bool or type(start) is not int or not -FAR < start < FAR:
        return None
    left, right = FAR, 0 if causal else FAR
    if window is not None:
        if type(window) is not tuple or len(window) != 2 or not all(map(_is_side, window)):
            return None
        left = FAR if window[0] is None else window[0]
        right = right if window[1] is None else min(window[1], right)
    if mask is None:
        return factor, cap, start, left, right, None
    placed = _engine.mask_of(mask, sizes)
    return None if placed is None or flows(mask) else (factor, cap, start, left, right, placed)


def _is_side(side: Any) -> bool:
    return side is None or (type(side) is int and 0 <= side < FAR)


def _placed(x: Tensor) -> tuple[int, int, int, int]:
    strides = x.stride()
    batch = strides[0] if len(strides) == 4 else 0
    return x.data_ptr(), batch, strides[-3], strides[-2]


def _attended(q: Tensor, heads: Heads, view: View, keep: bool, statistics: bool) -> tuple[Tensor, Tensor | None]:
    placed_q, placed_k, placed_v, sizes, dtype = heads
    n, d, dv = sizes[3], sizes[5], sizes[6]
    out = torch.empty_like(q) if dv == d and q.is_contiguous() else torch.empty((*q.shape[:-1], dv), dtype=q.dtype)
    state = torch.empty((*q.shape[:-1], STATE_NUMBERS), dtype=torch.float64) if keep else None
    _engine.attention_at(
        placed_q, placed_k, placed_v, (out.data_ptr(), sizes[1] * n * dv, n * dv, dv),
        0 if state is None else state.data_ptr(), sizes, view, statistics, dtype, threads(),
    )  # fmt: skip
    return out, state


class _Attention(torch.autograd.Function):
    """q, k, v, mask, where they lie, view, whether statistics are wanted → the output, and every row's numbers."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, heads: Heads, view: View, statistics: bool
    ) -> tuple[Tensor, Tensor | None]:
        out, state = _attended(q, heads, view, True, statistics)
        assert state is not None
        ctx.mark_non_differentiable(state)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, k, v, mask, out, state)
        ctx.how = heads, view
        return out, state

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        nothing = (None,) * 7
        if gradient is None:
            return nothing
        q, k, v, mask, out, state = ctx.saved_tensors
        if not unseen(gradient, q, k, v):
            return (*_through_dense(ctx, gradient, q, k, v, mask), *nothing[3:])
        (placed_q, placed_k, placed_v, sizes, dtype), view = ctx.how  # the saved tensors keep their memory alive
        if gradient.stride(-1) != 1:
            gradient = gradient.contiguous()
        dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v))
        _engine.attention_backward_at(
            placed_q, placed_k, placed_v, _placed(out), _placed(gradient), state.data_ptr(),
            (dq.data_ptr(), dk.data_ptr(), dv.data_ptr()), sizes, view, dtype, threads(),
        )  # fmt: skip
        return dq, dk, dv, *nothing[3:]


def _through_dense(
    ctx: Any, gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> tuple[Tensor | None, ...]:
    """Materialise the logits with tensor operations, which autograd can differentiate again."""
    scale, cap, start, left, right, _ = ctx.how[1]
    options = Options(
        scale=scale,
        positions=torch.arange(start, start + q.shape[-2]),
        left=left if left < FAR else None,
        right=right if right < FAR else None,
        mask=mask,
        softcap=cap or None,
    )
    needed = [i for i in range(3) if ctx.needs_input_grad[i]]
    again = torch.is_grad_enabled()
    given = [q, k, v] if again else [x.detach().requires_grad_(i in needed) for i, x in enumerate((q, k, v))]
    with torch.enable_grad():
        out = dense_attention.output(Call(given[0], given[1], given[2], options).spread(), None)
        found = torch.autograd.grad(out, [given[i] for i in needed], gradient, create_graph=again)
    slopes = dict(zip(needed, found, strict=True))
    return tuple(slopes.get(i) for i in range(3))
