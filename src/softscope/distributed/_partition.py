"""The partition of rows that are sharded over the ranks of a group: the states of all parts, merged."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.arrays import unchanged
from softscope._backends.reference.partition import State
from softscope._backends.torch.dtypes import widest
from softscope._backends.torch.maps import split, state
from softscope._backends.torch.tensor_softmax import distances
from softscope._partition import Partition
from softscope.distributed._exchange import Lengths, exchange
from softscope.distributed._parts import RowsPart, applied, first_derivatives_only, rows_part
from softscope.distributed._placed import placed

if TYPE_CHECKING:
    from collections.abc import Sequence


def partition(x: Any, /, *, group: Any = None, temperature: float = 1.0) -> Partition:
    """Compute the partition of each row over the parts of all ranks: lse, entropy, peak and more, the same everywhere.

    One message a call, with the seven numbers of each row's state; none in the backward pass. Each rank's gradient is
    that of the one reading: call backward on every rank. Arguments are as for `softmax`; the readings are plain tensors
    in float64, also those of a DTensor, and there of this rank's rows.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> partition(torch.tensor([0.0, 0.0, -1000.0])).peak
    tensor(0.5000, dtype=torch.float64)
    >>> dist.destroy_process_group()
    """
    place = placed(x, group, "x")

    def prepare() -> _StatePart:
        part = rows_part(place.part, temperature, "partition")
        return _StatePart(part.x, part.lead, part.temperature, part.facts)

    part, numbers, _ = exchange(place.group, "partition", prepare)
    ranks = [
        Partition(*split(torch.stack(parts, dim=-1)), part.temperature, unchanged)
        for parts in zip(*numbers, strict=True)
    ]
    found = functools.reduce(Partition.merge, ranks).state
    n, c, m, r, u, t, w = (number.to(widest(part.x)) if number.is_floating_point() else number for number in found)
    c, r, u, t, w, highest = applied(_Sums, part.x, m, c, r, u, t, w, part.temperature)
    whole = State(*(number.reshape(part.lead) for number in (n, c, m, r, u, t, w)))
    return Partition(whole, highest.reshape(part.lead), part.temperature, unchanged)


class _StatePart(RowsPart):
    """Rows whose whole state is sent."""

    @functools.cached_property
    def state(self) -> State:
        """The state of this part."""
        return state(self.x.detach(), self.temperature, None)[0]

    def numbers(self, lengths: Lengths) -> Sequence[Tensor]:  # noqa: ARG002
        """n, c, m, r, u, t, w of each row."""
        return [number.double() for number in self.state]


class _Sums(torch.autograd.Function):
    """Carry gradients of the whole state to this rank's entries; `tensor_partition` has the same of one process."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, m: Tensor, c: Tensor, r: Tensor, u: Tensor, t: Tensor, w: Tensor, temperature: float
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(x, m, c)
        ctx.temperature = temperature
        return c.clone(), r.clone(), u.clone(), t.clone(), w.clone(), m.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        x, m, c = (value if value.ndim > 1 else value.unsqueeze(-1) for value in ctx.saved_tensors)
        wide = x.to(m.dtype)
        d = distances(wide, ctx.temperature, m)
        e = torch.exp(d)
        below = d < 0.0
        d = d.masked_fill(e == 0.0, 0.0)
        gc, gr, gu, gt, gw, highest = (gradient.unsqueeze(-1) for gradient in gradients)
        at_top = gc + gw  # w has e^2d − e^d there
        slope = e * (torch.where(below, gr + 2.0 * gw * e, at_top) + gu * (1.0 + d) + gt * d * (2.0 + d))
        flow = slope / ctx.temperature + torch.where(wide == m, highest / c, 0.0)
        return flow.masked_fill(wide == -math.inf, 0.0).to(x.dtype), *[None] * 7
