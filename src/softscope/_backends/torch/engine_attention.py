"""Attention of CPU tensors with the engine's kernels, as custom operators: autograd and compilers see one operation.

The backward pass recomputes the weights from each row's saved maximum and sum. If the backward pass is itself
differentiated, tensor operations materialise the logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.attention import Call, Options, joint_batch
from softscope._backends.engine import attention as _engine
from softscope._backends.torch import dense_attention
from softscope._backends.torch.engine_memory import DTYPES, flows, memory, memory_of, reachable, threads, transformed

if TYPE_CHECKING:
    from softscope._backends.reference.partition import State


def offers(call: Call, additive: Any) -> bool:
    """Tell whether the engine supports the call: softmax of CPU tensors, no transform, no gradient for the mask."""
    return _engine.offers(call, additive) and reaches(call)


def reaches(call: Call) -> bool:
    """Tell whether the engine can access the tensors of the call, and nobody asks for more than it gives."""
    options = call.options
    if call.q.dtype not in DTYPES or flows(options.mask):
        return False
    given = (call.q, call.k, call.v, options.mask, options.scale, options.sink, options.alpha)
    tensors = [x for x in given if isinstance(x, Tensor)]
    if torch.compiler.is_compiling():
        return all(x.is_cpu for x in tensors) and not transformed()
    return all(reachable(x) for x in tensors)


def attend(call: Call, statistics: bool) -> tuple[Tensor, Any]:
    """Compute the output and, if requested, every row's state and largest score."""
    assert call.v is not None
    given = (call.q, call.k, call.v, *flat_options(call))
    recorded = torch.compiler.is_compiling() or any(flows(x) for x in given)
    out, state = (_attention if recorded else attended)(*given, statistics)
    return out, _read(state) if statistics else None


def of_rows(call: Call) -> tuple[State, Tensor]:
    """Compute every row's state and largest score, without the output."""
    found = _statistics if torch.compiler.is_compiling() else _found_statistics
    return _read(found(call.q, call.k, *flat_options(call)))


def _read(state: Tensor) -> tuple[State, Tensor]:
    return _engine.read(state.detach().unbind(-1), lambda n: n.to(torch.int64))


def per_head(call: Call, value: Any) -> Tensor:
    """Return a number, or one per head, as float64 (heads,)."""
    heads = call.q.shape[-3]
    if isinstance(value, Tensor):
        return value.to(torch.float64).reshape(-1).expand(heads)
    return torch.full((heads,), value, dtype=torch.float64, device=call.q.device)


def flat_options(call: Call) -> tuple[Tensor | None, Tensor, Tensor | None, Tensor, int, int, float]:
    """Flatten the options but alpha, because PyTorch's operators take no records; `options_of` rebuilds them."""
    options = call.options
    sink = None if options.sink is None else per_head(call, options.sink)
    left, right = (_engine.FAR if side is None else side for side in (options.left, options.right))
    return options.mask, per_head(call, options.scale), sink, options.positions, left, right, options.softcap or 0.0


def options_of(
    mask: Tensor | None, scale: Tensor, sink: Tensor | None, positions: Tensor, left: int, right: int, softcap: float
) -> Options:
    """Rebuild the record from `flat_options`."""
    return Options(
        scale=scale[:, None, None],
        positions=positions,
        left=left if left < _engine.FAR else None,
        right=right if right < _engine.FAR else None,
        mask=mask,
        softcap=softcap or None,
        sink=None if sink is None else sink[:, None],
    )


def rows_of(q: Tensor, *others: Tensor) -> tuple[int, ...]:
    """Return the shape (…, heads, rows), with the batch axes of all tensors."""
    return (*joint_batch(q, *others), *q.shape[-3:-1])


def attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    sink: Tensor | None,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
    statistics: bool,
) -> tuple[Tensor, Tensor]:
    """Compute the output and each row's 8 numbers; without statistics, only c, m and r among them are valid."""
    rows = rows_of(q, k, v)
    out, state = q.new_empty((*rows, v.shape[-1])), q.new_empty((*rows, _engine.STATE_NUMBERS), dtype=torch.float64)
    options = memory_of(options_of(mask, scale, sink, positions, left, right, softcap))
    _engine.run(
        memory(q), memory(k), memory(v), options, memory(out), memory(state), statistics=statistics, threads=threads()
    )
    return out, state


# Autograd and the compiler see this operator. Without them, call the function itself: dispatching the operator can cost
# ten times the computation.
_attention = torch.library.custom_op("softscope::attention", attended, mutates_args=(), device_types="cpu")


@_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    rows = rows_of(q, k, v)
    return q.new_empty((*rows, v.shape[-1])), q.new_empty((*rows, _engine.STATE_NUMBERS), dtype=torch.float64)


def _found_statistics(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    sink: Tensor | None,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
) -> Tensor:
    state = q.new_empty((*rows_of(q, k), _engine.STATE_NUMBERS), dtype=torch.float64)
    options = memory_of(options_of(mask, scale, sink, positions, left, right, softcap))
    _engine.run(memory(q), memory(k), None, options, None, memory(state), threads=threads())
    return state


_statistics = torch.library.custom_op(
    "softscope::attention_statistics", _found_statistics, mutates_args=(), device_types="cpu"
)


@_statistics.register_fake
def _(q: Tensor, k: Tensor, *_: Any) -> Tensor:
    return q.new_empty((*rows_of(q, k), _engine.STATE_NUMBERS), dtype=torch.float64)


def gradients(
    gradient: Tensor,
    out: Tensor,
    state: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    sink: Tensor | None,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute dq, dk and dv with all batch axes, and each row's share of the scale's gradient, (…, heads, rows).

    k and v may be a part of the keys of which `out` and `state` know all: then dq and the scale's are the part's share.
    """
    found = _empty_gradients(out, state, q, k, v)
    options = memory_of(options_of(mask, scale, sink, positions, left, right, softcap))
    _engine.run_backward(
        memory(q), memory(k), memory(v), options, memory(out), memory(state), memory(gradient),
        [memory(x) for x in found], threads(),
    )  # fmt: skip
    return found


_backward = torch.library.custom_op("softscope::attention_backward", gradients, mutates_args=(), device_types="cpu")


@_backward.register_fake
def _(_: Tensor, out: Tensor, state: Tensor, q: Tensor, k: Tensor, v: Tensor, *__: Any) -> tuple[Tensor, ...]:
    return _empty_gradients(out, state, q, k, v)


def _empty_gradients(
    out: Tensor, state: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch = out.shape[:-3]
    dq, dk, dv = (x.new_empty((*batch, *x.shape[-3:])) for x in (q, k, v))
    return dq, dk, dv, state.new_empty(out.shape[:-1])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, mask, scale, sink, positions, left, right, softcap, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, mask, scale, sink, positions, *output)
    ctx.how = left, right, softcap


def _back(ctx: Any, gradient: Tensor | None, _: Any) -> tuple[Any, ...]:
    """Compute the gradients of q, k, v, scale and sink."""
    nothing = (None,) * 11
    if gradient is None:
        return nothing
    q, k, v, mask, scale, sink, positions, out, state = ctx.saved_tensors
    left, right, softcap = ctx.how
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # the backward pass is itself differentiated
        return _through_dense(ctx, gradient)
    dq, dk, dv, dscale = _backward(gradient, out, state, q, k, v, mask, scale, sink, positions, left, right, softcap)
    found = [x.sum_to_size(like.shape) for x, like in ((dq, q), (dk, k), (dv, v))]
    of_scale = sum_by_head(dscale) if ctx.needs_input_grad[4] else None
    of_sink = sink_gradient(gradient, out, state, sink) if sink is not None and ctx.needs_input_grad[5] else None
    return (*found, None, of_scale, of_sink, *nothing[6:])


def sum_by_head(x: Tensor) -> Tensor:
    """Sum (…, heads, rows) over all axes but the heads."""
    return x.sum(dim=tuple(i for i in range(x.ndim) if i != x.ndim - 2))


def sink_gradient(gradient: Tensor, out: Tensor, state: Tensor, sink: Tensor) -> Tensor:
    """Compute the sink's: its share of the weight, times the keys' joint contribution, which the sink reduces."""
    c, m, r = (state[..., i] for i in (1, 2, 3))
    share = 1.0 / (1.0 + (c + r) * torch.exp(m - sink[:, None]))
    given = (gradient.double() * out.double()).sum(dim=-1)
    return -sum_by_head(torch.where(m == -torch.inf, 0.0, share * given))


def _through_dense(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    q, k, v, mask, scale, sink, positions, *_ = ctx.saved_tensors
    left, right, softcap = ctx.how
    call = Call(q, k, v, options_of(mask, scale, sink, positions, left, right, softcap))
    inputs = {i: x for i, x in enumerate((q, k, v, None, scale, sink)) if x is not None and ctx.needs_input_grad[i]}
    out = dense_attention.output(call.spread(), None)
    gradients = torch.autograd.grad(out, list(inputs.values()), gradient, create_graph=True)
    found = dict(zip(inputs, gradients, strict=True))
    return tuple(found.get(i) for i in range(11))


_attention.register_autograd(_back, setup_context=_keep)
