"""How alike the queries or the keys of a head are: a head whose keys are all one direction has nothing to choose by."""

from __future__ import annotations

import torch
from torch import Tensor

from softscope._backends.torch.row_reading import computing

MOST = 16  # tokens compared with each other, and sequences looked at


def alike(x: Tensor, *, centred: bool) -> Tensor:
    """The mean |cos| between vectors of different tokens, (B, heads); 1 if all lie on one line.

    Args:
        x: (B, heads, tokens, d).
        centred: take their mean off first. A part that all keys share changes no weight.

    >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [-3.0, -6.0]])[None, None]
    >>> float(alike(x, centred=False).round(decimals=4))
    1.0
    """
    step = max(1, x.shape[-2] // MOST)
    x = x[:MOST, :, ::step][:, :, :MOST].to(computing(x))
    if centred:
        x = x - x.mean(dim=-2, keepdim=True)
    lengths = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    unit = x / lengths.clamp_min(torch.finfo(x.dtype).tiny)
    cosines = (unit @ unit.mT).abs()
    n = x.shape[-2]
    if n < 3:
        return torch.full(x.shape[:2], torch.nan, device=x.device)
    return (cosines.sum(dim=(-2, -1)) - cosines.diagonal(dim1=-2, dim2=-1).sum(dim=-1)) / (n * (n - 1))
