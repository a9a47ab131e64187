"""The sums of rows by the engine, for the common case: a plain softmax of CPU tensors.

The tensor operations of `logits` and `dense` say what is computed, and serve every other case and device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.attention import Call
from softscope._backends.reference.gradient_readings import GradientReadings
from softscope._backends.torch import dense_attention, engine_memory
from softscope.doctor.read.logits import Sums, alignment, logits_of, of_sums

SUMS = 12  # of a row; their order is that of the engine's `Reading`


def offered(call: Call) -> bool:
    """Whether the engine reads the rows of this call."""
    plain = call.sink is None and call.softcap is None and call.alpha == 1.0
    some = call.q.numel() > 0 and call.k.numel() > 0
    return plain and some and engine_memory.reachable(call.q) and (call.mask is None or call.mask.dtype == torch.bool)


def read(
    call: Call, grad: Tensor | None, count: Tensor, lengths: Tensor
) -> tuple[dict[str, Tensor], GradientReadings | None, Tensor]:
    """What needs no loss, what needs one, and the weights; lengths: 1/|k| of all keys, (B, heads, m)."""
    x = logits_of(call, slope=False).x.contiguous()
    if grad is not None:
        assert call.v is not None
        grad = (grad.to(x.dtype) @ call.v.transpose(-1, -2)).expand(x.shape).contiguous()
    # The engine walks by address: there must be as much memory as it walks, whatever was broadcast on the way here.
    count, lengths = count.expand(x.shape[:-1]).contiguous(), lengths.expand(*x.shape[:-2], -1).contiguous()
    out = x.new_empty((SUMS, *count.shape))
    rows, keys = x.shape[-2:]
    _engine.read_rows(
        x.data_ptr(), 0 if grad is None else grad.data_ptr(), lengths.data_ptr(), count.data_ptr(), out.data_ptr(),
        x.numel() // (rows * keys), rows, keys, lengths.shape[-1],
        engine_memory.DTYPES[x.dtype], engine_memory.threads(),
    )  # fmt: skip
    top, aligned, z, product, squares, below, squared, mean, demand, lowest, expected, supply = out
    values = alignment(call, count, top, aligned)
    values |= of_sums(Sums(top, z, product, squares, below, squared), count)[0]
    if grad is None:
        return values, None, x
    return values, dense_attention.from_sums(count, mean, demand, lowest, expected, supply), x
