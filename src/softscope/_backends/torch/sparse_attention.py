"""Sparse attention of CPU tensors with the engine's kernels, as custom operators; differentiable in alpha, too.

The backward pass recomputes the weights from a few numbers per row. If the backward pass is itself differentiated,
tensor operations materialise the logits.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.attention import Call
from softscope._backends.engine import sparse_attention as _engine
from softscope._backends.torch import dense_attention, engine_attention
from softscope._backends.torch.engine_attention import flat_options, options_of, per_head, rows_of
from softscope._backends.torch.engine_memory import flows, memory, memory_of, threads

if TYPE_CHECKING:
    from softscope._arguments.attention import Options


def offers(call: Call, additive: Any) -> bool:
    """Tell whether the engine supports the call: sparse weights, and tensors that the engine can access."""
    return _engine.offers(call, additive) and engine_attention.reaches(call)


def attend(call: Call, statistics: bool) -> tuple[Tensor, Any]:
    """Compute the output and, if requested, the readings of every row."""
    assert call.v is not None
    given = (call.q, call.k, call.v, *_flat(call))
    recorded = torch.compiler.is_compiling() or any(flows(x) for x in given)
    out, numbers = (_attention if recorded else _attended)(*given, statistics)
    return out, _read(numbers) if statistics else None


def of_rows(call: Call) -> dict[str, Tensor]:
    """Compute the readings of every row, without the output."""
    found = _statistics if torch.compiler.is_compiling() else _found_statistics
    return _read(found(call.q, call.k, *_flat(call)))


def _read(numbers: Tensor) -> dict[str, Tensor]:
    found: dict[str, Tensor] = _engine.read(numbers.detach().unbind(-1), lambda n: n.to(torch.int64))
    return found


def _flat(call: Call) -> tuple[Tensor, Tensor | None, Tensor, Tensor, int, int, float]:
    """Flatten the options, because PyTorch's operators take no records; `_options` rebuilds them."""
    mask, scale, _, positions, left, right, softcap = flat_options(call)
    return per_head(call, call.options.alpha), mask, scale, positions, left, right, softcap


def _options(
    alpha: Tensor, mask: Tensor | None, scale: Tensor, positions: Tensor, left: int, right: int, softcap: float
) -> Options:
    options = options_of(mask, scale, None, positions, left, right, softcap)
    return dataclasses.replace(options, alpha=alpha[:, None, None])


def _attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alpha: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
    statistics: bool,
) -> tuple[Tensor, Tensor]:
    rows = rows_of(q, k, v)
    out, numbers = q.new_empty((*rows, v.shape[-1])), q.new_empty((*rows, _engine.NUMBERS), dtype=torch.float64)
    options = memory_of(_options(alpha, mask, scale, positions, left, right, softcap))
    _engine.run(
        memory(q), memory(k), memory(v), options, memory(out), memory(numbers), statistics=statistics,
        threads=threads(),
    )  # fmt: skip
    return out, numbers


# As for softmax: without autograd and compilers, the function itself is called.
_attention = torch.library.custom_op("softscope::sparse_attention", _attended, mutates_args=(), device_types="cpu")


@_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    rows = rows_of(q, k, v)
    return q.new_empty((*rows, v.shape[-1])), q.new_empty((*rows, _engine.NUMBERS), dtype=torch.float64)


def _found_statistics(
    q: Tensor,
    k: Tensor,
    alpha: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
) -> Tensor:
    numbers = q.new_empty((*rows_of(q, k), _engine.NUMBERS), dtype=torch.float64)
    options = memory_of(_options(alpha, mask, scale, positions, left, right, softcap))
    _engine.run(memory(q), memory(k), None, options, None, memory(numbers), threads=threads())
    return numbers


_statistics = torch.library.custom_op(
    "softscope::sparse_attention_statistics", _found_statistics, mutates_args=(), device_types="cpu"
)


@_statistics.register_fake
def _(q: Tensor, k: Tensor, *_: Any) -> Tensor:
    return q.new_empty((*rows_of(q, k), _engine.NUMBERS), dtype=torch.float64)


@torch.library.custom_op("softscope::sparse_attention_backward", mutates_args=(), device_types="cpu")
def _backward(
    gradient: Tensor,
    numbers: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alpha: Tensor,
    mask: Tensor | None,
    scale: Tensor,
    positions: Tensor,
    left: int,
    right: int,
    softcap: float,
    learns_alpha: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    found = _empty_gradients(numbers, q, k, v, learns_alpha)
    options = memory_of(_options(alpha, mask, scale, positions, left, right, softcap))
    *others, dalpha = (memory(x) for x in found)
    _engine.run_backward(
        memory(q), memory(k), memory(v), options, memory(numbers), memory(gradient),
        others, dalpha if learns_alpha else None, threads(),
    )  # fmt: skip
    return found


@_backward.register_fake
def _(_: Tensor, numbers: Tensor, q: Tensor, k: Tensor, v: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return _empty_gradients(numbers, q, k, v, others[-1])


def _empty_gradients(
    numbers: Tensor, q: Tensor, k: Tensor, v: Tensor, learns_alpha: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Allocate dq, dk and dv with all batch axes, and each row's share of the gradients of scale and alpha."""
    batch, rows = numbers.shape[:-3], numbers.shape[:-1]
    dq, dk, dv = (x.new_empty((*batch, *x.shape[-3:])) for x in (q, k, v))
    return dq, dk, dv, numbers.new_empty(rows), numbers.new_empty(rows if learns_alpha else (0,))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, alpha, mask, scale, positions, left, right, softcap, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, alpha, mask, scale, positions, output[1])
    ctx.how = left, right, softcap


def _back(ctx: Any, gradient: Tensor | None, _: Any) -> tuple[Any, ...]:
    """Compute the gradients of q, k, v, alpha and scale."""
    nothing = (None,) * 11
    if gradient is None:
        return nothing
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # the backward pass is itself differentiated
        return _through_dense(ctx, gradient)
    q, k, v, alpha, mask, scale, positions, numbers = ctx.saved_tensors
    learns_alpha = ctx.needs_input_grad[3]
    *found, dscale, dalpha = _backward(
        gradient, numbers, q, k, v, alpha, mask, scale, positions, *ctx.how, learns_alpha
    )
    heads_last = tuple(i for i in range(dscale.ndim) if i != dscale.ndim - 2)
    found = [x.sum_to_size(like.shape) for x, like in zip(found, (q, k, v), strict=True)]
    of_alpha = dalpha.sum(dim=heads_last) if learns_alpha else None
    of_scale = dscale.sum(dim=heads_last) if ctx.needs_input_grad[5] else None
    return (*found, of_alpha, None, of_scale, *nothing[6:])


def _through_dense(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    q, k, v, alpha, mask, scale, positions, _ = ctx.saved_tensors
    call = Call(q, k, v, _options(alpha, mask, scale, positions, *ctx.how))
    inputs = {i: x for i, x in enumerate((q, k, v, alpha, None, scale)) if ctx.needs_input_grad[i]}
    out = dense_attention.output(call.spread(), None)
    gradients = torch.autograd.grad(out, list(inputs.values()), gradient, create_graph=True)
    found = dict(zip(inputs, gradients, strict=True))
    return tuple(found.get(i) for i in range(11))


_attention.register_autograd(_back, setup_context=_keep)
