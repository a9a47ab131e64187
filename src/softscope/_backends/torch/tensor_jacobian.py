"""The Jacobian J = diag(s) − s·sᵀ/Σs with s = p^(2−α) on the support, for tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softscope._backends.torch.dtypes import like, row_dtype


def sensitivity(p: Tensor, alpha: Any) -> Tensor:
    """Compute s = p^(2−α) where p > 0, else 0 (NaN stays NaN)."""
    if isinstance(alpha, float) and alpha == 1.0:
        return p
    positive = p > 0.0
    return torch.where(positive, torch.pow(p.masked_fill(~positive, 1.0), 2.0 - like(alpha, p.dtype)), p)


def steep(alpha: Any) -> bool:
    """Tell whether alpha is above 2, or may be in some row: the values in a tensor are not inspected."""
    return isinstance(alpha, Tensor) or alpha > 2.0


def log_sensitivity(p: Tensor, alpha: Any) -> Tensor:
    """Compute log s, and −inf outside the support: for α > 2, s itself overflows where weights are small."""
    none = p <= 0.0
    most = torch.finfo(p.dtype).max / 1024.0  # more would change nothing but let the logarithm overflow, too
    alpha = alpha.to(p.dtype).clamp(max=most) if isinstance(alpha, Tensor) else min(alpha, most)
    return ((2.0 - alpha) * torch.log(p.masked_fill(none, 1.0))).masked_fill(none, -math.inf)


def product(p: Tensor, v: Tensor, alpha: Any) -> Tensor:
    """Compute J·v, measuring v from its value at the largest weight: J maps constants to 0, and nothing cancels."""
    if p.shape[-1] == 0:
        return p * v
    if steep(alpha):
        return _steep_product(p, v, like(alpha, p.dtype))
    s = sensitivity(p, alpha)
    fixed = v.detach() if v.requires_grad else v  # a batch of gradients (is_grads_batched) cannot be detached
    v = v - fixed.gather(-1, s.detach().argmax(dim=-1, keepdim=True))
    total = s.sum(dim=-1, keepdim=True)
    return s * (v - (s * v).sum(dim=-1, keepdim=True) / total.masked_fill(total == 0.0, 1.0))


def _steep_product(p: Tensor, v: Tensor, alpha: Any) -> Tensor:
    """Compute J·v for any α, where s may leave the range of the dtype; see `reference.jacobian`."""
    log_s = log_sensitivity(p, alpha)
    fixed = log_s.detach()
    top, index = fixed.max(dim=-1, keepdim=True)
    first = torch.zeros_like(fixed, dtype=torch.bool).scatter(-1, index, True)
    none = first | (fixed == -math.inf)
    second = fixed.masked_fill(none, -math.inf).amax(dim=-1, keepdim=True)
    empty = top == -math.inf
    top, base = top.masked_fill(empty, 0.0), second.masked_fill(second == -math.inf, 0.0)
    v = v - v.gather(-1, index)
    relative = torch.exp((log_s - base).masked_fill(none, 0.0)).masked_fill(none, 0.0)
    share = torch.exp(second - top)
    largest = torch.exp((log_s.gather(-1, index) - top).masked_fill(empty, 0.0))  # 1, with its derivative
    moved = (relative * v.masked_fill(none, 0.0)).sum(dim=-1, keepdim=True)
    moved = moved / (largest + share * relative.sum(dim=-1, keepdim=True))
    others = _times_exp(v - share * moved, log_s.masked_fill(none, 0.0)).masked_fill(none, 0.0)
    broken = torch.isnan(p + v).any(dim=-1, keepdim=True)
    return torch.where(first, _times_exp(-largest * moved, base), others).masked_fill(broken, math.nan)


def _times_exp(value: Tensor, log: Tensor) -> Tensor:
    """Compute value·exp(log) in two factors, so that neither overflows before the product does; 0 stays 0."""
    half = torch.exp(0.5 * log)
    nothing = value == 0.0
    return torch.where(nothing & torch.isinf(half), 0.0, (value * half) * half)


def trace(p: Tensor, alpha: Any) -> Tensor:
    """Compute the trace Σ s_i·(1 − s_i/Σs), without the axis; at the largest s, 1 − s_i/Σs would cancel."""
    if p.shape[-1] == 0:
        return p.sum(dim=-1)
    log_s = log_sensitivity(p, alpha)
    top, index = log_s.max(dim=-1, keepdim=True)
    relative = torch.exp(log_s - top.masked_fill(top == -math.inf, 0.0))
    share = relative / relative.sum(dim=-1, keepdim=True).clamp(min=1.0)
    s = torch.exp(log_s.scatter(-1, index, -math.inf))
    return (s * (share.gather(-1, index) + (1.0 - share))).sum(dim=-1).masked_fill(torch.isnan(p).any(dim=-1), math.nan)


def jacobian_product(p: Tensor, v: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute J·v/T in p's dtype."""
    wide = row_dtype(p)
    return (product(p.to(wide), v.to(wide), alpha) / like(temperature, wide)).to(p.dtype)


def jacobian(p: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute the dense matrix J/T; the diagonal is minus the sum of the row's other entries, which does not cancel."""
    wide = row_dtype(p)
    if steep(alpha):
        log_s = log_sensitivity(p.to(wide), alpha)
        none = log_s == -math.inf
        kept = log_s.masked_fill(none, 0.0)
        log_share = kept - torch.logsumexp(log_s, dim=-1, keepdim=True)
        hidden = none.unsqueeze(-1) | none.unsqueeze(-2)
        outer = torch.exp((kept.unsqueeze(-1) + log_share.unsqueeze(-2)).masked_fill(hidden, 0.0)).masked_fill(
            hidden, 0.0
        )
    else:
        s = sensitivity(p.to(wide), alpha)
        total = s.sum(dim=-1, keepdim=True)
        share = s / total.masked_fill(total == 0.0, 1.0)
        outer = s.unsqueeze(-1) * share.unsqueeze(-2)
    # Not minus its own diagonal: for α > 2 that may be infinite.
    off = outer.masked_fill(torch.eye(outer.shape[-1], dtype=torch.bool, device=outer.device), 0.0)
    J = torch.diag_embed(off.sum(dim=-1)) - off
    t = like(temperature, wide)
    return (J / (t.unsqueeze(-1) if isinstance(t, Tensor) else t)).to(p.dtype)
