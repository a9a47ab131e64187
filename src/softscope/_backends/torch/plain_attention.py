"""The short way for attention of CPU tensors (batch, heads, n, d), (heads, n, d) or (n, d), forward and backward.

Generating token by token calls attention for microseconds of work; checking and describing every option takes longer.
So this way takes tensors by address, and leaves to the full one whatever is unusual: sinks, scales for each head,
broadcast batches, gradients of masks and of a single head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.attention import Call, Options
from softscope._backends.engine.attention import FAR, STATE_NUMBERS
from softscope._backends.engine.plain_attention import view_of
from softscope._backends.torch import dense_attention
from softscope._backends.torch.autograd import applied
from softscope._backends.torch.backward import unseen
from softscope._backends.torch.engine_memory import flows, threads, unwatched

if TYPE_CHECKING:
    from softscope._engine import Heads, PlacedMask, Sizes, View


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
) -> tuple[Tensor | None, Tensor | None] | None:
    """Compute the output and, if requested, every row's numbers (…, 8).

    None if the full path is needed, which also finds the words for what is wrong.
    """
    found = _engine.heads_of(q, k, v) if unwatched() else None
    if found is None or torch.is_autocast_enabled("cpu") or type(statistics) is not bool:
        return None
    view = view_of(q, found[3], _place, scale, causal, start, window, mask, softcap)
    if view is None:
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        if q.ndim == 2:
            return None
        out, state = applied(_Attention, q, k, v, mask, found, view, statistics)
        return out, state
    return _attended(q, found, view, statistics, statistics)


def plain_statistics(q: Any, k: Any, *options: Any) -> Tensor | None:
    """Compute every row's numbers without the output; autograd sees them as constants."""
    found = _engine.queries_of(q, k) if unwatched() else None
    view = None if found is None or torch.is_autocast_enabled("cpu") else view_of(q, found[3], _place, *options)
    return None if found is None or view is None else _attended(q, found, view, True, True)[1]


def _place(mask: Any, sizes: Sizes) -> PlacedMask | None:
    return None if flows(mask) else _engine.mask_of(mask, sizes)


def _placed(x: Tensor) -> tuple[int, int, int, int]:
    strides = x.stride()
    batch = strides[0] if len(strides) == 4 else 0
    return x.data_ptr(), batch, strides[-3], strides[-2]


def _attended(q: Tensor, heads: Heads, view: View, keep: bool, statistics: bool) -> tuple[Tensor | None, Tensor | None]:
    """Compute the output, if there are values, and every row's numbers, if kept."""
    placed_q, placed_k, placed_v, sizes, dtype = heads
    batch, h, _, n, _, d, dv = sizes
    lead = (batch, h, n)[4 - q.ndim :]
    out = state = None
    if dv:
        out = torch.empty_like(q) if dv == d and q.is_contiguous() else torch.empty(*lead, dv, dtype=q.dtype)
    if keep:
        state = torch.empty(*lead, STATE_NUMBERS, dtype=torch.float64)
    _engine.attention_at(
        placed_q, placed_k, placed_v, 0 if out is None else out.data_ptr(), 0 if state is None else state.data_ptr(),
        sizes, view, statistics, dtype, threads(),
    )  # fmt: skip
    return out, state


class _Attention(torch.autograd.Function):
    """q, k, v, mask, where they lie, view, whether statistics are wanted → the output, and every row's numbers."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, heads: Heads, view: View, statistics: bool
    ) -> tuple[Tensor, Tensor]:
        out, state = _attended(q, heads, view, True, statistics)
        assert out is not None
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
