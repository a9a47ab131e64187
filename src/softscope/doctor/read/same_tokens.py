"""Whether position enters: without it, the same token has the same key wherever it stands."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softscope._backends.torch.row_reading import computing

PAIRS = 256  # compared at most
LONGEST = 512  # tokens of a sequence that are compared with each other
EQUAL = 1e-4  # of their length: what rounding leaves between keys that are computed alike


def same_keys(k: Tensor, tokens: Tensor, real: Tensor | None) -> Tensor:
    """The share of pairs of equal tokens in one sequence whose keys are equal, (1, kv_heads); NaN if no token repeats.

    Args:
        k: (B, kv_heads, m, d), of the first layer.
        tokens: their ids, (B, m).
        real: which of them are no padding, (B, m), if any is.

    >>> same_keys(torch.tensor([[[[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]]]), torch.tensor([[7, 8, 7]]), None)
    tensor([[1.]])
    """
    # A few sequences are enough, and of long ones, tokens here and there.
    step = -(-tokens.shape[1] // LONGEST)
    tokens, k = tokens[:, ::step], k[:, :, ::step]
    some = slice(0, max(1, LONGEST**2 // tokens.shape[1] ** 2))
    alike = (tokens[some, :, None] == tokens[some, None, :]).triu(1)
    if real is not None:
        real = real[some, ::step]
        alike &= real[:, :, None] & real[:, None, :]
    pairs = alike.nonzero()
    if not len(pairs):
        return torch.full((1, k.shape[1]), math.nan, device=k.device)
    b, i, j = pairs[:: max(1, len(pairs) // PAIRS)][:PAIRS].unbind(dim=1)
    one, other = (k[b, :, x].to(computing(k)) for x in (i, j))
    away = torch.linalg.vector_norm(one - other, dim=-1)
    length = torch.linalg.vector_norm(one, dim=-1)
    return ((away <= EQUAL * length) & (length > 0)).to(away.dtype).mean(dim=0, keepdim=True)
