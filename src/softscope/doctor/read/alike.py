"""How alike the queries or the keys of a head are: a head whose keys are all one direction has nothing to choose by."""

from __future__ import annotations

import torch
from torch import Tensor

from softscope._backends.torch.row_reading import computing

MOST = 16  # tokens compared with each other, and sequences looked at
FEWEST = 6  # pairs of different tokens, each counted both ways: fewer say nothing


def alike(x: Tensor, *, centred: bool, real: Tensor | None = None) -> Tensor:
    """The mean |cos| between vectors of different tokens, (B, heads); 1 if all lie on one line.

    Args:
        x: (B, heads, tokens, d).
        centred: take their mean off first. A part that all keys share changes no weight.
        real: which tokens are no padding, (B, tokens). Padding is all alike, and so are tokens that are the same.

    >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [-3.0, -6.0]])[None, None]
    >>> float(alike(x, centred=False).round(decimals=4))
    1.0
    """
    step = max(1, x.shape[-2] // MOST)
    x = x[:MOST, :, ::step][:, :, :MOST].to(computing(x))
    n = x.shape[-2]
    some = torch.ones(x.shape[0], n, dtype=torch.bool, device=x.device)
    if real is not None:
        some = real.expand(-1, real.shape[-1])[:MOST, ::step][:, :MOST].expand(x.shape[0], n)
    kept = some[:, None, :, None]
    if centred:
        x = x - (x * kept).sum(dim=-2, keepdim=True) / kept.sum(dim=-2, keepdim=True).clamp_min(1)
    unit = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    away = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    pairs = kept & kept.mT & (away > 1e-4 * torch.linalg.vector_norm(x, dim=-1, keepdim=True))
    cosines = (unit @ unit.mT).abs().masked_fill(~pairs, 0.0)
    count = pairs.sum(dim=(-2, -1))
    return (cosines.sum(dim=(-2, -1)) / count).masked_fill(count < FEWEST, torch.nan)
