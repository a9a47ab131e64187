"""Whether blocked rows look at one kind of token, wherever it stands: a full stop, a separator, a line's end."""

from __future__ import annotations

import torch
from torch import Tensor

COMMON = 0.25  # of the keys: what most rows must read anyway is no place to rest


def on_one_token(columns: Tensor, tokens: Tensor, real: Tensor | None) -> Tensor:
    """The largest share of the weight that keys with one id hold, (1, heads); NaN if there is no weight.

    Args:
        columns: weight of each key, summed over the blocked rows, (B, heads, m).
        tokens: the keys' ids, (B, m).
        real: which of them are no padding, (B or 1, m), if any is.

    >>> weight = torch.tensor([[[0.5, 3.0, 0.2, 2.0, 0.3, 0.0, 0.0, 0.0, 0.0]]])
    >>> on_one_token(weight, torch.tensor([[5, 7, 6, 7, 8, 1, 2, 3, 4]]), None)      # 7 has 5 of 6
    tensor([[0.8333]])
    """
    ids, place = torch.unique(tokens, return_inverse=True)
    known = torch.ones_like(tokens, dtype=torch.bool) if real is None else real.expand(tokens.shape)
    often = torch.zeros(len(ids), device=tokens.device).index_add_(0, place[known], known[known].float())
    held = columns.new_zeros(columns.shape[1], len(ids))
    held.index_add_(1, place.flatten(), columns.transpose(0, 1).flatten(1))
    rare = often <= COMMON * often.sum()
    return (held.masked_fill(~rare, 0.0).amax(dim=-1) / held.sum(dim=-1)).unsqueeze(0)
