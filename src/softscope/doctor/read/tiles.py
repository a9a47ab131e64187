"""Tiles of rows: their readings, their weights by key and by offset, and the sum over all tiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softscope._backends.reference.row_reading import RowReading
from softscope._gradient_readings import GradientReadings
from softscope.doctor.read.one_token import ByToken


@dataclasses.dataclass(eq=False)
class RowReadings:
    """Readings per row, (B, heads, R), plus sums per key column."""

    values: dict[str, Tensor]
    valid: Tensor  # rows of tokens that see a key
    included: Tensor  # those that also see enough keys for an average
    columns: Tensor  # (B, heads, m): weight per key summed over the included rows; one more column for a sink
    keys: int  # m; any column beyond is the sink's
    k_norm: Tensor | None  # (B, heads)
    v_norm: Tensor | None = None  # (B, heads)
    reached: Tensor | None = None  # (B, heads): share of all rows of the call that a gradient reached
    of_sequences: dict[str, Tensor] = dataclasses.field(default_factory=dict)  # other readings, (B or 1, heads)
    blocked_columns: Tensor | None = None  # (B, heads, m): the same over blocked rows
    blocked_rows: Tensor | None = None  # (B, heads): number of blocked rows
    blocked_offsets: Tensor | None = None  # (heads, 2m − 1): their weight per key − query, with 0 in the middle
    blocked_tokens: ByToken | None = None  # their weight per kind of token


class Tile(NamedTuple):
    """Some rows: their reading, what the loss asks of them, and their weights."""

    reading: RowReading
    gradient: GradientReadings | None
    weights: Tensor  # (B, heads, rows, keys + sinks): the first keys, then the sinks
    sinks: int
    extra: dict[str, Tensor]  # readings that do not come from a partition


class ByKey(NamedTuple):
    """The weight of a tile's rows, summed."""

    columns: Tensor
    blocked: Tensor | None
    blocked_columns: Tensor | None
    blocked_offsets: Tensor | None


def by_key(tile: Tile, included: Tensor, positions: Sequence[int] | None, m: int) -> ByKey:
    """Where the included rows put their weight, and where the blocked ones among them do."""
    # A row that is left out may hold NaN, and 0·NaN would spoil the sums over the others.
    tile = tile._replace(weights=tile.weights.masked_fill(~included.unsqueeze(-1), 0.0))
    columns = _columns(tile, included, m)
    if tile.gradient is None:
        return ByKey(columns, None, None, None)
    blocked = tile.gradient.blocked & included
    some = bool(blocked.any())
    blocked_columns = _columns(tile, blocked, m) if some else torch.zeros_like(columns)
    offsets = None
    if positions is not None:
        offsets = tile.weights.new_zeros(tile.weights.shape[1], 2 * m - 1)
        if some:
            _add_offsets(offsets, tile, blocked, positions)
    return ByKey(columns, blocked, blocked_columns, offsets)


def _columns(tile: Tile, rows: Tensor, m: int) -> Tensor:
    """Weight of each of m keys, and then of the sink, summed over these rows: (B, heads, m or m + 1)."""
    found = (rows.to(tile.weights.dtype).unsqueeze(-2) @ tile.weights).squeeze(-2)
    keys = found.shape[-1] - tile.sinks
    if keys == m:
        return found
    return torch.cat([functional.pad(found[..., :keys], (0, m - keys)), found[..., keys:]], dim=-1)


def _add_offsets(to: Tensor, tile: Tile, rows: Tensor, positions: Sequence[int]) -> None:
    """Add these rows' weight at each key − query from 1 − m to m − 1 to (heads, 2m − 1); a sink has no offset."""
    together = (tile.weights * rows.unsqueeze(-1)).sum(dim=0)
    keys, middle = tile.weights.shape[-1] - tile.sinks, to.shape[-1] // 2
    for row, position in enumerate(positions):
        first = middle - position
        to[:, first : first + keys] += together[:, row, :keys]


def joined(
    values: dict[str, Tensor], found: list[ByKey], keys: int, valid: Tensor, included: Tensor, k_norm: Tensor | None
) -> RowReadings:
    """Join the rows' readings and add up the columns of all tiles."""
    columns = torch.stack([part.columns for part in found]).sum(dim=0)
    result = RowReadings(values, valid, included, columns, keys, k_norm)
    blocked = [part.blocked for part in found if part.blocked is not None]
    if blocked:
        whole = torch.cat(blocked, dim=-1)
        result.values["blocked"] = whole.to(columns.dtype)
        result.blocked_rows = whole.sum(dim=-1)
        result.blocked_columns = torch.stack([p.blocked_columns for p in found if p.blocked_columns is not None]).sum(0)
    offsets = [part.blocked_offsets for part in found if part.blocked_offsets is not None]
    if offsets:
        result.blocked_offsets = torch.stack(offsets).sum(dim=0)
    return result
