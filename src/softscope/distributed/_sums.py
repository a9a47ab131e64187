"""The sums of rows whose entries lie on several ranks: m = max x and z − 1 = Σ exp((x − m)/T) − 1, which merge.

z − 1 without the maximum's own 1, so that nothing is lost next to one-hot. A part without entries has m = −inf, z = 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from softscope import _engine
from softscope._backends.engine import kernels
from softscope._backends.torch import tensor_softmax
from softscope._backends.torch.dtypes import row_dtype
from softscope._backends.torch.engine_memory import memory, rows_at, threads
from softscope._backends.torch.maps import offered

if TYPE_CHECKING:
    from collections.abc import Sequence


class Sums(NamedTuple):
    """Of each row: the maximum, and z − 1."""

    m: Tensor
    rest: Tensor

    @property
    def z(self) -> Tensor:
        """Σ exp((x − m)/T)."""
        return 1.0 + self.rest

    def log_z(self) -> Tensor:
        """log Σ exp((x − m)/T)."""
        return torch.log1p(self.rest)

    def lse(self, temperature: float) -> Tensor:
        """log Σ exp(x/T)."""
        finite = self.m.masked_fill(torch.isinf(self.m), 0.0) / temperature + self.log_z()
        return torch.where(torch.isinf(self.m), self.m, finite)


def of_part(x: Tensor, temperature: float) -> Sums:
    """Return the sums of the rows of x, (rows, n) and contiguous."""
    rows, n = x.shape
    if n == 0 or rows == 0:
        return Sums(x.new_full((rows,), -math.inf), torch.full((rows,), -1.0, dtype=row_dtype(x), device=x.device))
    if offered(x, temperature):
        # The loss of any class passes over its row as carefully as a loss must, and leaves the sums.
        losses, sums = torch.empty(rows, dtype=torch.float64), torch.empty((rows, 2), dtype=torch.float64)
        classes = torch.zeros(rows, dtype=torch.int64)
        _engine.cross_entropy_at(
            x.data_ptr(), classes.data_ptr(), rows_at(x), (-1, 0.0, 0), temperature, 0, losses.data_ptr(),
            sums.data_ptr(), threads(),
        )  # fmt: skip
        m, rest = sums[:, 0].to(x.dtype), sums[:, 1]
        odd = torch.isnan(rest)
        if bool(odd.any()):  # the kernel's maximum passes over NaN, and a row of −inf may have any sum
            m = torch.where(odd, x.amax(dim=-1), m)
            rest = rest.masked_fill(m == -math.inf, -1.0)
        return Sums(m, rest)
    d = tensor_softmax.distances(x.to(row_dtype(x)), temperature)
    c, r = tensor_softmax.sums(torch.exp(d), d)
    return Sums(tensor_softmax.maximum(x).squeeze(-1), ((c - 1.0) + r).squeeze(-1))


def to_send(sums: Sums, x: Tensor) -> Sequence[Tensor]:
    """Return the sums as they travel: m in x's dtype loses nothing, z − 1 less than the results' last rounding."""
    return sums.m, sums.rest.to(torch.float64 if x.dtype is torch.float64 else torch.float32)


def merged(m: Tensor, rest: Tensor, temperature: float, dtype: torch.dtype) -> Sums:
    """Merge the sums of all parts, (ranks, rows) each: those below the maximum shrink by exp of their distance.

    Every rank has the same parts in the same order, and so gets the same bits.
    """
    m, rest = m.to(dtype), rest.to(dtype)
    top, first = m.max(dim=0)
    d = tensor_softmax.distances(m.T, temperature).T
    shrunk = torch.exp(d) * (1.0 + rest)
    # exp(−inf) of a part without entries is 0, and 0·0 stays 0; the first part at the maximum keeps its rest apart.
    others = shrunk.scatter(0, first.unsqueeze(0), 0.0).sum(dim=0)
    return Sums(top, rest.gather(0, first.unsqueeze(0)).squeeze(0) + others)


def weights(
    x: Tensor, sums: Sums, temperature: float, factor: Tensor | float = 1.0, summand: Tensor | float = 0.0
) -> Tensor:
    """Compute factor·exp((x − m)/T)/z + summand of a part's rows, in x's dtype."""
    nothing = sums.m == -math.inf
    if offered(x, temperature):
        numbers = torch.empty((x.shape[0], 5), dtype=torch.float64)
        for column, value in enumerate((temperature, sums.m, sums.z, factor, summand)):
            numbers[:, column] = value
        numbers[nothing, 4] = math.nan  # the kernel would give such rows weights of 0
        out = torch.empty_like(x)
        entries, results = memory(x), memory(out)
        _engine.scaled_weights(
            kernels.bits(entries), kernels.bits(results), numbers.numpy(), kernels.brain(entries), threads()
        )
        return out
    wide = row_dtype(x)
    e = torch.exp(tensor_softmax.distances(x.to(wide), temperature, _column(sums.m)))
    return (_column(factor) * (e / _column(sums.z)) + _column(summand)).to(x.dtype)


def log_weights(x: Tensor, sums: Sums, temperature: float) -> Tensor:
    """Compute (x − m)/T − log z of a part's rows, in x's dtype."""
    d = tensor_softmax.distances(x.to(row_dtype(x)), temperature, _column(sums.m))
    return (d - _column(sums.log_z())).to(x.dtype)


def _column(value: Any) -> Any:
    return value.unsqueeze(-1) if isinstance(value, Tensor) else value
