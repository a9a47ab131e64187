"""softmax, log_softmax and logsumexp of rows that are sharded over the ranks of a group."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.arrays import dtype_name
from softscope._arguments.checks import flag
from softscope._backends.torch.backward import log_softmax_slope
from softscope._backends.torch.dtypes import row_dtype
from softscope.distributed import _sums
from softscope.distributed._exchange import Lengths, exchange
from softscope.distributed._parts import RowsPart, applied, first_derivatives_only, rows_part
from softscope.distributed._placed import placed
from softscope.distributed._sums import Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.distributed import ProcessGroup


def softmax(x: Any, /, *, group: Any = None, temperature: float = 1.0) -> Any:
    """Turn logits into weights that sum to 1 over the parts of all ranks: exp(x_i/T) / Σ_j exp(x_j/T).

    Every rank calls it with its part of the last axis, and gets the weights of its part. Parts may differ in length,
    and may be empty; all else must be the same on every rank, or all ranks raise. One message a call, one in the
    backward pass; `traffic.bytes_sent` counts them. The bounds are those of `softscope.softmax`.

    Args:
        x: This rank's part (…, n) of the rows as a torch tensor, or a DTensor.
        group: A ProcessGroup, a DeviceMesh of one axis, (mesh, "axis"), or None for all ranks; a DTensor has its own.
        temperature: A number > 0, the same on every rank.

    Returns:
        The weights, in x's shape and dtype; of a DTensor, a DTensor with its placements.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun starts more of them
    >>> softmax(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    >>> dist.destroy_process_group()
    """
    return _mapped(_Softmax, "softmax", x, group, temperature)


def log_softmax(x: Any, /, *, group: Any = None, temperature: float = 1.0) -> Any:
    """Compute the logarithm of softmax, x/T − log Σ exp(x/T), the sum being over the parts of all ranks.

    Arguments and result are as for `softmax`.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> log_softmax(torch.tensor([0.0, -20.0]))
    tensor([-2.0612e-09, -2.0000e+01])
    >>> dist.destroy_process_group()
    """
    return _mapped(_LogSoftmax, "log_softmax", x, group, temperature)


def logsumexp(x: Any, /, *, group: Any = None, temperature: float = 1.0, keepdims: bool = False) -> Any:
    """Compute log Σ exp(x/T) over the parts of all ranks; the result is the same on every rank.

    Each rank's gradient of it is that of the one result, not of the sum of all ranks' copies: call backward on every
    rank, on the same loss. Arguments are as for `softmax`. `keepdims=True` keeps the last axis with length 1.
    Of a DTensor, the result is a DTensor that is replicated where x is sharded along the row.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> logsumexp(torch.tensor([1000.0, 1000.0]))
    tensor(1000.6932)
    >>> dist.destroy_process_group()
    """
    place = placed(x, group, "x")

    def prepare() -> RowsPart:
        flag(keepdims, "keepdims")
        return rows_part(place.part, temperature, "logsumexp")

    part, sums = _summed(place.group, "logsumexp", prepare)
    keep = (1,) if keepdims else ()
    lse = applied(_LogSumExp, part.x, *sums, part.temperature)
    return place.of_rows(lse.reshape((*part.lead, *keep)), keep)


def _mapped(function: type[_Softmax | _LogSoftmax], name: str, x: Any, group: Any, temperature: Any) -> Any:
    place = placed(x, group, "x")
    part, sums = _summed(place.group, name, lambda: rows_part(place.part, temperature, name, sends_gradients=True))
    y = applied(function, part.x, *sums, part.temperature, place.group)
    return place.like_x(y.reshape((*part.lead, part.length)))


def _summed(group: ProcessGroup | None, name: str, prepare: Callable[[], RowsPart]) -> tuple[RowsPart, Sums]:
    part, (m, rest), _ = exchange(group, name, prepare)
    return part, _sums.merged(m, rest, part.temperature, row_dtype(part.x))


@dataclasses.dataclass(frozen=True)
class _Gradient:
    """What a rank sends in the backward pass."""

    name: str
    sent: Sequence[Tensor]
    length: int

    @property
    def facts(self) -> dict[str, str]:
        """What must be the same on every rank."""
        return {"the function": f"the backward pass of {self.name}", "the number of rows": str(len(self.sent[0])),
                "the gradient's dtype": dtype_name(self.sent[0])}  # fmt: skip

    def numbers(self, lengths: Lengths) -> Sequence[Tensor]:  # noqa: ARG002
        """One or several numbers for each row."""
        return self.sent


def _forward(compute: Callable[[Tensor, Sums, float], Tensor]) -> Callable[..., Tensor]:
    """The forward pass x, m, z − 1, T, group → result, which is all that the backward pass needs."""

    def forward(ctx: Any, x: Tensor, m: Tensor, rest: Tensor, temperature: float, group: ProcessGroup | None) -> Tensor:
        result = compute(x, Sums(m, rest), temperature)
        ctx.save_for_backward(result)
        ctx.call = temperature, group
        return result

    return forward


class _Softmax(torch.autograd.Function):
    """x, m, z − 1, T → p. Backward: J·g/T, g counted from its value at the largest weight, where nothing cancels."""

    forward = staticmethod(_forward(_sums.weights))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        (p,) = ctx.saved_tensors
        temperature, group = ctx.call
        wide, (rows, n) = row_dtype(p), p.shape
        if n:
            index = p.argmax(dim=-1, keepdim=True)
            top, centre = (found.gather(-1, index).squeeze(-1) for found in (p, gradient))
        else:
            top, centre = p.new_full((rows,), -1.0), p.new_zeros((rows,))
        weights, g = p.to(wide), gradient.to(wide)
        product = (weights * (g - centre.to(wide).unsqueeze(-1))).sum(dim=-1)
        sent = _Gradient("softmax", (top, centre, weights.sum(dim=-1).double(), product.double()), n)
        _, (tops, centres, totals, products), _ = exchange(group, "softmax backward", lambda: sent)
        centres = centres.to(wide)
        middle = centres.gather(0, tops.argmax(dim=0, keepdim=True))
        totals, products = totals.to(wide), products.to(wide)
        moved = (products + (centres - middle) * totals).sum(dim=0)
        total = totals.sum(dim=0)
        mean = moved / total.masked_fill(total == 0.0, 1.0)
        flow = weights * ((g - middle.T) - mean.unsqueeze(-1)) / temperature
        return flow.to(p.dtype), None, None, None, None


class _LogSoftmax(torch.autograd.Function):
    """x, m, z − 1, T → log p. Backward: (g − p·Σg)/T."""

    forward = staticmethod(_forward(_sums.log_weights))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        (y,) = ctx.saved_tensors
        temperature, group = ctx.call
        g = gradient.to(row_dtype(y))
        sent = _Gradient("log_softmax", (g.sum(dim=-1).double(),), y.shape[-1])
        _, (totals,), _ = exchange(group, "log_softmax backward", lambda: sent)
        flow = log_softmax_slope(y.to(g.dtype), g, totals.to(g.dtype).sum(dim=0).unsqueeze(-1))
        return (flow / temperature).to(y.dtype), None, None, None, None


class _LogSumExp(torch.autograd.Function):
    """x, m, z − 1, T → log Σ exp(x/T). Backward: g·p/T, which needs no other rank."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, m: Tensor, rest: Tensor, temperature: float) -> Tensor:
        ctx.save_for_backward(x, m, rest)
        ctx.temperature = temperature
        return Sums(m, rest).lse(temperature).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        x, m, rest = ctx.saved_tensors
        factor = gradient.to(m.dtype) / ctx.temperature
        return _sums.weights(x, Sums(m, rest), ctx.temperature, factor), None, None, None
