"""The Jacobian J = diag(s) − s·sᵀ/Σs with s = p^(2−α) on the support, for tensors."""

from __future__ import annotations

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


def product(p: Tensor, v: Tensor, alpha: Any) -> Tensor:
    """Compute J·v, measuring v from its value at the largest weight: J maps constants to 0, and nothing cancels."""
    if p.shape[-1] == 0:
        return p * v
    s = sensitivity(p, alpha)
    fixed = v.detach() if v.requires_grad else v  # a batch of gradients (is_grads_batched) cannot be detached
    v = v - fixed.gather(-1, s.detach().argmax(dim=-1, keepdim=True))
    total = s.sum(dim=-1, keepdim=True)
    return s * (v - (s * v).sum(dim=-1, keepdim=True) / total.masked_fill(total == 0.0, 1.0))


def jacobian_product(p: Tensor, v: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute J·v/T in p's dtype."""
    wide = row_dtype(p)
    return (product(p.to(wide), v.to(wide), alpha) / like(temperature, wide)).to(p.dtype)


def jacobian(p: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute the dense matrix J/T; the diagonal is minus the sum of the row's other entries, which does not cancel."""
    wide = row_dtype(p)
    s = sensitivity(p.to(wide), alpha)
    total = s.sum(dim=-1, keepdim=True)
    share = s / total.masked_fill(total == 0.0, 1.0)
    outer = s.unsqueeze(-1) * share.unsqueeze(-2)
    off = outer - torch.diag_embed(torch.diagonal(outer, dim1=-2, dim2=-1))
    J = torch.diag_embed(off.sum(dim=-1)) - off
    t = like(temperature, wide)
    return (J / (t.unsqueeze(-1) if isinstance(t, Tensor) else t)).to(p.dtype)
