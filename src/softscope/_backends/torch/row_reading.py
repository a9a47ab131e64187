"""The reading of attention rows for tensors: the engine where it can access them, else tensor operations.

`reference.row_reading` defines the reading.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._backends.engine import attention as _engine
from softscope._backends.reference.row_reading import GradientSums, RowReading, beyond_rounding
from softscope._backends.torch.dense_attention import logits, weights, with_column
from softscope._backends.torch.dtypes import widest
from softscope._backends.torch.engine_memory import DTYPES, memory, memory_of, reachable, threads, transformed
from softscope._backends.torch.maps import state
from softscope._backends.torch.tensor_jacobian import product

if TYPE_CHECKING:
    from softscope._arguments.attention import Call


def offers(call: Call) -> bool:
    """Tell whether the engine can read the rows of this call."""
    options = call.options
    tensors = [x for x in (call.q, call.k, call.v, options.mask, options.scale, options.sink) if isinstance(x, Tensor)]
    return call.q.dtype in DTYPES and _engine.offers(call, None) and all(reachable(x) for x in tensors)


def by_engine(
    call: Call, grad: Tensor | None, *, key_lengths: Tensor | None = None, want_weights: bool = False
) -> tuple[RowReading, Tensor | None]:
    """Read every row and, if requested, the weights of the keys.

    `grad` is the gradient of the output. `key_lengths` holds 1/|k|, (…, kv_heads, m), in the `computing` dtype.
    """
    if grad is not None and grad.dtype != call.q.dtype:
        # In the wider of the two, since a gradient can be too small or large for float16.
        wide = torch.promote_types(grad.dtype, call.q.dtype)
        v = None if call.v is None else call.v.to(wide)
        call, grad = dataclasses.replace(call, q=call.q.to(wide), k=call.k.to(wide), v=v), grad.to(wide)
    rows = (*call.batch, *call.q.shape[-3:-1])
    numbers = call.q.new_empty((*rows, _engine.READING_NUMBERS), dtype=torch.float64)
    found = call.q.new_empty((*rows, call.k.shape[-2]), dtype=computing(call.q)) if want_weights else None
    gradient = None if grad is None else memory(grad)
    _engine.run_reading(
        memory(call.q), memory(call.k), None if call.v is None or grad is None else memory(call.v), gradient,
        memory_of(call.options), memory(numbers), key_lengths=None if key_lengths is None else memory(key_lengths),
        weights=None if found is None else memory(found), threads=threads(),
    )  # fmt: skip
    reading = _engine.reading(numbers.unbind(-1), call.options.sink is not None, lambda n: n.to(torch.int64))
    return (reading if grad is not None else reading._replace(gradient=None)), found


def computing(x: Tensor) -> torch.dtype:
    """Return the dtype in which the engine computes with x."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def dense(
    call: Call, grad: Tensor | None, dtype: torch.dtype, *, key_lengths: Tensor | None = None
) -> tuple[RowReading, Tensor]:
    """Read every row with all logits materialised in this dtype; `call` has one key head per query head.

    With a sink, the weights have one more column.
    """
    scores, x, visible = logits(call, None, dtype)
    dP = None
    if grad is not None:
        assert call.v is not None
        dP = (grad.to(dtype) @ call.v.to(dtype).transpose(-1, -2)).expand(visible.shape)
    aligned = None
    if key_lengths is not None:
        aligned = (scores.abs() * key_lengths.unsqueeze(-2)).masked_fill(~visible, 0.0).sum(dim=-1)
    reading = of_logits(x, visible)
    highest = scores.masked_fill(~visible, -math.inf).amax(dim=-1) if x.shape[-1] else reading.highest
    options = call.options
    slope = None if options.softcap is None or dP is None else torch.cosh(scores / options.softcap) ** -2.0
    if options.sink is not None:
        x, visible = with_column(x, options.sink), with_column(visible, True)
        dP = None if dP is None else with_column(dP, 0.0)
        slope = None if slope is None else with_column(slope, 1.0)
    p = weights(x, visible, None, options.alpha)
    sums = None if dP is None else gradient_sums_of(p, dP, slope, visible, options.alpha)
    return reading._replace(highest=highest.to(reading.highest.dtype), aligned=aligned, gradient=sums), p


def of_logits(x: Tensor, visible: Tensor) -> RowReading:
    """Read rows from logits alone; the largest logit stands in for the largest score."""
    found, highest = state(x, 1.0, visible)
    wide = x.to(widest(x))
    top = found.m.masked_fill(found.m == -math.inf, 0.0)
    d = (wide - top.unsqueeze(-1)).masked_fill(~visible, 0.0)
    return RowReading(found, highest, d.sum(dim=-1), (d * d).sum(dim=-1))


def gradient_sums(call: Call, grad_output: Tensor, dtype: torch.dtype) -> GradientSums:
    """Compute the gradient's part of the reading, also for alpha ≠ 1."""
    found = dense(call, grad_output, dtype)[0].gradient
    assert found is not None
    return found


def gradient_sums_of(p: Tensor, dP: Tensor, slope: Tensor | None, visible: Tensor, alpha: Any) -> GradientSums:
    """Compute the sums from the weights, their gradient and the cap's slope, all (…, rows, keys)."""
    n = visible.sum(dim=-1)
    dP = dP.masked_fill(~visible, 0.0)
    mean = dP.sum(dim=-1) / n
    centred = (dP - mean.unsqueeze(-1)).masked_fill_(~visible, 0.0)
    # The mean over the visible keys is 0, so their lowest value is at most the 0 of the hidden keys.
    lowest = centred.amin(dim=-1) if dP.shape[-1] else torch.zeros_like(mean)
    demand = torch.linalg.vector_norm(centred, dim=-1)
    reaching, expected = _reaching(p, centred, alpha)
    if slope is not None:  # a hidden key may hold NaN, and so may its slope
        reaching = (slope * reaching).masked_fill(~visible, 0.0)
    supply = torch.linalg.vector_norm(reaching, dim=-1)
    return GradientSums(n, mean, beyond_rounding(demand, mean, torch.finfo(p.dtype).eps), lowest, expected, supply)


def _reaching(p: Tensor, v: Tensor, alpha: Any) -> tuple[Tensor, Tensor]:
    """Compute J·v and Σ p·v; overwrites v. Softmax weights sum to 1, which saves a pass compared with `product`."""
    if isinstance(alpha, Tensor) or alpha != 1.0 or p.shape[-1] == 0 or transformed():
        return product(p, v, alpha), (p * v).sum(dim=-1)
    top = v.gather(-1, p.argmax(dim=-1, keepdim=True))
    moved = v.sub_(top).mul_(p)  # measured from the largest weight, as in `product`: nothing cancels near one-hot
    away = moved.sum(dim=-1, keepdim=True)
    return moved.addcmul_(p, away, value=-1.0), (away + top).squeeze(-1)
