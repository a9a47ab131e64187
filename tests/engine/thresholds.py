"""Sparse attention in float64 with every weight explicit: thresholds by bisection, derivatives of them by autograd."""

import math

import torch
from torch import Tensor


def logits(
    q: Tensor, k: Tensor, *, scale=None, causal=False, query_start=0, window=None, mask=None, softcap=None
) -> Tensor:
    """The logits, (…, heads, n, m), −inf where a key is hidden."""
    heads, n, m = q.shape[-3], q.shape[-2], k.shape[-2]
    k = k.repeat_interleave(heads // k.shape[-3], dim=-3)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scale = scale[:, None, None] if isinstance(scale, Tensor) else scale
    x = scale * (q @ k.mT)
    x = x if softcap is None else softcap * torch.tanh(x / softcap)
    offset = torch.arange(m) - (query_start + torch.arange(n))[:, None]
    left, right = window or (None, None)
    hidden = torch.zeros(n, m, dtype=torch.bool)
    hidden = hidden | (offset > 0) if causal else hidden
    hidden = hidden if left is None else hidden | (offset < -left)
    hidden = hidden if right is None else hidden | (offset > right)
    if mask is not None:
        hidden = hidden | (~mask if mask.dtype == torch.bool else mask == -math.inf)
        x = x if mask.dtype == torch.bool else x + mask.masked_fill(mask == -math.inf, 0.0)
    return x.masked_fill(hidden, -math.inf)


def weights(x: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and τ of α-entmax for one α > 1 per head, (heads,): Σ [1 + β·(x − m − σ)]₊^(1/β) = 1, β = α − 1.

    m is the maximum and τ = β·(m + σ) − 1, so that nothing cancels near α = 1. Bisection finds σ without derivatives;
    one step of Newton's method, which stays there, gives it those of the implicit function.
    """
    beta = (alpha - 1.0)[:, None, None]
    seen = x > -math.inf
    top = x.detach().amax(dim=-1, keepdim=True)
    top = torch.where(top == -math.inf, 0.0, top)
    d = (x - top).masked_fill(~seen, 0.0)

    def powers(sigma: Tensor) -> tuple[Tensor, Tensor]:
        above = beta * (d - sigma)
        some = seen & (above > -1.0)
        log = torch.log1p(above.masked_fill(~some, 0.0)) / beta
        zero = torch.zeros_like(log)
        return torch.where(some, torch.exp(log), zero), torch.where(some, torch.exp((1.0 - beta) * log), zero)

    with torch.no_grad():
        low = torch.zeros_like(top * beta)
        high = -torch.expm1(-beta * math.log(x.shape[-1])) / beta * 1.01 + 1e-9 + low
        for _ in range(60):
            middle = 0.5 * (low + high)
            over = powers(middle)[0].sum(dim=-1, keepdim=True) >= 1.0
            low, high = torch.where(over, middle, low), torch.where(over, high, middle)
        slope = powers(low)[1].sum(dim=-1, keepdim=True)
        slope = torch.where(slope == 0.0, 1.0, slope)
    total = powers(low)[0].sum(dim=-1, keepdim=True)
    sigma = low + (total - total.detach()) / slope
    return powers(sigma)[0], torch.where(seen.any(dim=-1, keepdim=True), beta * (top + sigma) - 1.0, math.nan)[..., 0]


def attention(q: Tensor, k: Tensor, v: Tensor, *, alpha, **options) -> Tensor:
    """The output; softmax in heads whose alpha is 1."""
    alpha = torch.as_tensor(alpha, dtype=torch.float64).expand(q.shape[-3])
    x = logits(q, k, **options)
    soft = alpha == 1.0
    p, _ = weights(x, torch.where(soft, 1.5, alpha))
    p = torch.where(soft[:, None, None], torch.softmax(x, dim=-1).nan_to_num(0.0), p)
    return p @ v.repeat_interleave(q.shape[-3] // v.shape[-3], dim=-3)


def support(x: Tensor, alpha: Tensor) -> dict[str, Tensor]:
    """What `Support` reports, for one α > 1 per head."""
    p, tau = weights(x, alpha)
    s = torch.where(p > 0.0, p.masked_fill(p == 0.0, 1.0) ** (2.0 - alpha[:, None, None]), 0.0)
    first = torch.arange(p.shape[-1]) == s.argmax(dim=-1, keepdim=True)
    share = s / s.sum(dim=-1, keepdim=True)
    others = s.masked_fill(first, 0.0)
    return {
        "tau": tau,
        "size": (p > 0.0).sum(dim=-1),
        "entropy": -torch.special.xlogy(p, p).sum(dim=-1),
        "collision": (p * p).sum(dim=-1),
        "peak": p.amax(dim=-1),
        "jacobian_trace": (others * (1.0 - share + share.amax(dim=-1, keepdim=True))).sum(dim=-1),
    }
