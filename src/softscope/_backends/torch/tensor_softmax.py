"""softmax, log_softmax and logsumexp of rows of tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softscope._backends.torch.dtypes import like, row_dtype


def hidden_to_minus_inf(x: Tensor, visible: Tensor | None) -> Tensor:
    """Set the logits of hidden entries to −inf; they get no gradient."""
    return x if visible is None else x.masked_fill(~visible, -math.inf)


def maximum(x: Tensor) -> Tensor:
    """Return the largest entry of each row as a constant, with the axis kept.

    It can be a constant because the result is the same for any fixed shift. The derivatives are then correct to all
    orders, even at ties, where those of max are not.
    """
    if x.shape[-1] == 0:
        return x.new_full((*x.shape[:-1], 1), -math.inf)
    return x.detach().amax(dim=-1, keepdim=True)


def distances(x: Tensor, temperature: Any, m: Tensor | None = None) -> Tensor:
    """Compute (x − m) / temperature, m being max x unless it is given with the axis kept, as for a part of a row.

    −inf stays −inf and adds nothing to the temperature's gradient.
    """
    m = maximum(x) if m is None else m
    gap = x - m.masked_fill(m == -math.inf, 0.0)
    if isinstance(temperature, float) and temperature == 1.0:
        return gap
    low = x == -math.inf
    t = like(temperature, x.dtype)
    # x − m may overflow the dtype even if (x − m)/T does not, so halve both first.
    half = 0.5 * x.masked_fill(low, 0.0) - 0.5 * m.masked_fill(m == -math.inf, 0.0)
    wide = gap.masked_fill(low, 0.0)
    wide = torch.where(
        torch.isinf(wide) & ~torch.isinf(half), 2.0 * (half / t), wide.masked_fill(torch.isinf(wide), 0.0) / t
    )
    return wide.masked_fill(low, -math.inf)


def sums(e: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """Return c and r, the sums of e = exp(d) over the entries at the maximum and over the rest, with the axis kept.

    They are separate because a sum that includes the 1 rounds more coarsely than r, and log1p needs r alone.
    """
    below = d < 0.0  # False for NaN, so that NaN reaches c
    return (
        e.masked_fill(below, 0.0).sum(dim=-1, keepdim=True),
        e.masked_fill(~below, 0.0).sum(dim=-1, keepdim=True),
    )


def log_z(d: Tensor) -> Tensor:
    """Compute log Σ exp(d) = log c + log1p(r/c), with the axis kept."""
    c, r = sums(torch.exp(d), d)
    return torch.log(c) + torch.log1p(r / c)


def softmax(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the weights of the rows of x, in x's dtype."""
    if x.shape[-1] == 0:
        return x.clone()
    wide = hidden_to_minus_inf(x.to(row_dtype(x)), visible)
    # Not torch.softmax: on the CPU it sums long rows one by one, and its error is ten times the bound at 100k entries.
    d = distances(wide, temperature)
    e = torch.exp(d)
    c, r = sums(e, d)
    p = e / (c + r)
    return (p if visible is None else p.masked_fill(~visible, 0.0)).to(x.dtype)


def log_softmax(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the logarithms of the weights, in x's dtype."""
    if x.shape[-1] == 0:
        return x.clone()
    d = distances(hidden_to_minus_inf(x.to(row_dtype(x)), visible), temperature)
    y = d - log_z(d)
    return (y if visible is None else y.masked_fill(~visible, -math.inf)).to(x.dtype)


def logsumexp(x: Tensor, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute log Σ exp(x/T) of the rows, in x's dtype."""
    wide = hidden_to_minus_inf(x.to(row_dtype(x)), visible)
    m = maximum(wide)
    infinite = torch.isinf(m)
    t = like(temperature, wide.dtype)
    finite = m.masked_fill(infinite, 0.0) / t + log_z(distances(wide, temperature))
    known = infinite & ~torch.isnan(t) if isinstance(t, Tensor) else infinite
    lse = torch.where(known, m, finite)
    return lse.squeeze(-1).to(x.dtype)
