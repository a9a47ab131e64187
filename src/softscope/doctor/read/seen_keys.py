"""Which keys the rows see, and how much weight lies where none should: on later tokens, on padding, on nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softscope.doctor.read.kept_rows import KeptRows


def of_rows(
    kept: KeptRows, shown: Tensor | None, weights: Tensor, positions: Sequence[int] | None
) -> dict[str, Tensor]:
    """Readings of some rows, (B, heads, rows) each; NaN where the question does not arise.

    Args:
        kept: the call.
        shown: which keys they see, broadcastable to (B, heads, rows, keys); None if all.
        weights: (B, heads, rows, keys), without a sink.
        positions: of the queries among the keys; None if both are not of one sequence.
    """
    found: dict[str, Tensor] = {}
    shape, keys = weights.shape[:-1], weights.shape[-1]
    real = kept.observed.real
    if positions is not None:
        at = torch.tensor(positions, device=weights.device)
        later = torch.arange(keys, device=weights.device) > at[:, None]
        if real is not None:
            later = later & real[:, None, None, :keys]
        some = later.any(dim=-1).expand(shape)
        seen = (later if shown is None else later & shown).any(dim=-1).expand(shape)
        # The keys of a causal row end at its own: there are later ones in the sequence, and it sees none.
        last = at.expand(shape) >= kept.observed.m - 1
        sees = seen.to(weights.dtype)
        found["sees_ahead"] = sees.masked_fill(last | (~some & (keys == kept.observed.m)), math.nan)
        found["ahead"] = (weights * later).sum(dim=-1) if bool(seen.any()) else torch.zeros_like(sees)
        found["own"] = _own(shown, at, shape, keys).to(weights.dtype)
    if real is not None:
        found["padding"] = (weights * ~real[:, None, None, :keys]).sum(dim=-1)
    return found


def _own(shown: Tensor | None, at: Tensor, shape: torch.Size, keys: int) -> Tensor:
    """Whether each row sees the key at its own position."""
    if shown is None:
        return (at < keys).expand(shape)
    wide = shown.expand(*shape, keys)
    index = at.clamp(max=keys - 1)[:, None].expand(*shape, 1)
    return wide.gather(-1, index).squeeze(-1) & (at < keys)


def blind(kept: KeptRows, count: Tensor) -> Tensor:
    """The share of tokens that see no key at all, (B, heads); NaN where the keys are another sequence's.

    Such a sequence may be missing: an image that is not there, a condition that is dropped.

    Args:
        kept: the call.
        count: how many keys each row sees, (B, heads, R).
    """
    nothing = (count == 0).to(torch.float32)
    if kept.observed.n != kept.observed.m and kept.observed.places is None:
        return torch.full(count.shape[:2], math.nan, device=count.device)
    tokens = _tokens(kept, count)
    if tokens is None:
        return nothing.mean(dim=-1)
    rows = tokens[:, None].expand(count.shape)
    return nothing.masked_fill(~rows, 0.0).sum(dim=-1) / rows.sum(dim=-1)


def alone(count: Tensor, reached: Tensor, m: int) -> Tensor:
    """The share of the rows with loss that see a single key, where there are more, (B, heads); NaN if none has loss."""
    if m < 2:
        return torch.full(count.shape[:2], math.nan, device=count.device)
    return ((count == 1) & reached).sum(dim=-1) / reached.sum(dim=-1)


def _tokens(kept: KeptRows, count: Tensor) -> Tensor | None:
    """Which of the rows are tokens, (B, R): the batch tells, or a key that somebody sees; None for all."""
    if kept.observed.real is not None:
        return kept.observed.real[:, kept.rows]
    if kept.known_keys is None:
        return None
    known = kept.known_keys[:, kept.rows].expand(count.shape[0], -1)
    # If nobody sees anything, that is no padding: everything is hidden.
    return known | ~kept.known_keys.any(dim=-1, keepdim=True)
