"""Whether blocked rows look at one kind of token, wherever it stands: a full stop, a separator, a line's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

COMMON = 0.25  # of the keys: what most rows must read anyway is no place to rest


class ByToken(NamedTuple):
    """How much of the blocked rows' weight keys with one id hold."""

    ids: Tensor  # (different ids,)
    held: Tensor  # (heads, different ids); 0 for a token that is too common
    total: Tensor  # (heads,)


def by_token(columns: Tensor, tokens: Tensor, real: Tensor | None) -> ByToken:
    """The weight that keys with one id hold.

    Args:
        columns: weight of each key, summed over the blocked rows, (B, heads, m).
        tokens: the keys' ids, (B, m).
        real: which of them are no padding, (B or 1, m), if any is.

    >>> weight = torch.tensor([[[0.5, 3.0, 0.2, 2.0, 0.3, 0.0, 0.0, 0.0, 0.0]]])
    >>> found = by_token(weight, torch.tensor([[5, 7, 6, 7, 8, 1, 2, 3, 4]]), None)
    >>> int(found.ids[found.held.argmax()]), float(found.held.max()), float(found.total)
    (7, 5.0, 6.0)
    """
    ids, place = torch.unique(tokens, return_inverse=True)
    known = torch.ones_like(tokens, dtype=torch.bool) if real is None else real.expand(tokens.shape)
    often = torch.zeros(len(ids), device=tokens.device).index_add_(0, place[known], known[known].float())
    held = columns.new_zeros(columns.shape[1], len(ids))
    held.index_add_(1, place.flatten(), columns.transpose(0, 1).flatten(1))
    common = often > COMMON * often.sum()
    return ByToken(ids, held.masked_fill(common, 0.0), held.sum(dim=-1))


def over_passes(parts: Sequence[ByToken]) -> ByToken:
    """The same over several passes."""
    ids, place = torch.unique(torch.cat([part.ids for part in parts]), return_inverse=True)
    held = parts[0].held.new_zeros(parts[0].held.shape[0], len(ids))
    held.index_add_(1, place, torch.cat([part.held for part in parts], dim=1))
    return ByToken(ids, held, torch.stack([part.total for part in parts]).sum(dim=0))
