"""α-entmax of tensors for α > 2, from the lowest entry that has weight; see `reference.steep_entmax`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_STEPS = 60


def entmax(d: Tensor, beta: Tensor) -> Tensor:
    """Compute the weights of distances d ≤ 0, up to the rounding of their sum; β = α − 1 > 1 keeps the axis."""
    y, log_q = lowest(d, beta)
    return torch.exp(_log_weights(_log_b(d, y, beta), log_q, beta)).masked_fill(d < y, 0.0)


def lowest(d: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Find the lowest entry y that has weight, and the log of its weight q, with the axis kept."""
    y = _lowest_entry(d, beta)
    log_b = _log_b(d, y, beta)
    outside = d < y  # False for NaN, which must reach the sums
    size, ties = ((~outside).sum(dim=-1, keepdim=True), (d == y).sum(dim=-1, keepdim=True).clamp(min=1))
    q = torch.minimum(1.0 / size, (1.0 - torch.exp(log_b).sum(dim=-1, keepdim=True)) / ties)
    done = torch.isnan(q)
    resolution = torch.finfo(d.dtype).eps / 2.0
    for _ in range(_STEPS):
        log_q = torch.log(q)
        log_p = _log_weights(log_b, log_q, beta)
        slope = torch.exp((beta - 1.0) * (log_q - log_p).masked_fill(log_p <= log_q, 0.0)).masked_fill(outside, 0.0)
        excess = torch.exp(log_p).masked_fill(outside, 0.0).sum(dim=-1, keepdim=True) - 1.0
        new = (q - excess / slope.sum(dim=-1, keepdim=True)).clamp(min=0.0)
        near = ~(new < q * (1.0 - 8.0 * resolution))
        # A converged row stays fixed: its result must not depend on how many steps its neighbours take.
        q = torch.where(done, q, new)
        done = done | near
        if bool(done.all()):
            break
    return y, torch.log(q)


def _lowest_entry(d: Tensor, beta: Tensor) -> Tensor:
    """Find the lowest y with Σ b(y) < 1, by halving the sorted row."""
    ordered = d.sort(dim=-1, descending=True).values
    first = torch.zeros((*d.shape[:-1], 1), dtype=torch.int64, device=d.device)
    last = torch.full_like(first, d.shape[-1] - 1)
    for _ in range((d.shape[-1] - 1).bit_length()):  # y is somewhere from first to last
        middle = (first + last + 1) // 2
        y = ordered.gather(-1, middle)
        b = torch.exp(_log_b(ordered, y, beta))
        below_one = (b.sum(dim=-1, keepdim=True) < 1.0) & (y > -math.inf)
        first, last = torch.where(below_one, middle, first), torch.where(below_one, last, middle - 1)
        last = torch.maximum(first, last)
    broken = torch.isnan(d).any(dim=-1, keepdim=True)
    return ordered.gather(-1, first).masked_fill(broken, math.nan)


def _log_b(d: Tensor, y: Tensor, beta: Tensor) -> Tensor:
    """Compute log b = log(β·(d − y))/β; −inf where d ≤ y."""
    return ((torch.log((d - y).masked_fill(d <= y, 0.0)) + torch.log(beta)) / beta).masked_fill(d <= y, -math.inf)


def _log_weights(log_b: Tensor, log_q: Tensor, beta: Tensor) -> Tensor:
    """Compute log p = log(q^β + b^β)/β; where b = 0, it is log q."""
    none = log_b == -math.inf
    lower = (-beta * (log_b - log_q).abs()).masked_fill(none, -math.inf)
    return torch.maximum(log_b, log_q) + torch.log1p(torch.exp(lower)) / beta
