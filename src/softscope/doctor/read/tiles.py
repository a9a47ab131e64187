"""What tiles of rows say, and all of them together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softscope._backends.reference.gradient_readings import GradientReadings


@dataclasses.dataclass(eq=False)
class RowReadings:
    """One number per row, (B, heads, R), and what belongs to columns."""

    values: dict[str, Tensor]
    valid: Tensor  # rows of tokens that see a key
    included: Tensor  # those of them that see enough keys for an average
    columns: Tensor  # (B, heads, m): weight per key summed over the included rows; a sink's is one more
    keys: int  # m; more columns than that: the sink's
    k_norm: Tensor | None  # (B, heads)
    blocked_columns: Tensor | None = None  # (B, heads, m): the same over blocked rows
    blocked_rows: Tensor | None = None  # (B, heads): how many
    blocked_offsets: Tensor | None = None  # (heads, 2m − 1): their weight per key − query, 0 in the middle


class TileReadings(NamedTuple):
    """What a tile of rows says."""

    values: dict[str, Tensor]
    columns: Tensor
    keys: int
    blocked_columns: Tensor | None
    blocked_offsets: Tensor | None


def tile_readings(
    values: dict[str, Tensor], moving: GradientReadings | None, shares: Tensor, included: Tensor,
    positions: Sequence[int] | None, sizes: tuple[int, int],
) -> TileReadings:  # fmt: skip
    """The readings of these rows, and their weights by keys; sizes: how many keys there are, and sinks behind them."""
    m, sinks = sizes
    columns = _columns(shares, included, m, sinks)
    if moving is None:
        return TileReadings(values, columns, m, None, None)
    blocked = moving.blocked & included
    values |= {name: value for name, value in moving._asdict().items() if name != "blocked"}
    values["blocked"] = blocked.to(shares.dtype)
    some = bool(blocked.any())
    blocked_columns = _columns(shares, blocked, m, sinks) if some else torch.zeros_like(columns)
    offsets = None
    if positions is not None:
        offsets = shares.new_zeros(shares.shape[1], 2 * m - 1)
        if some:
            _add_offsets(offsets, shares, blocked, positions, sinks)
    return TileReadings(values, columns, m, blocked_columns, offsets)


def joined(
    parts: list[TileReadings], count: Tensor, valid: Tensor, included: Tensor, k_norm: Tensor | None
) -> RowReadings:  # fmt: skip
    """The parts' rows behind one another, and their columns added."""
    values = {name: torch.cat([part.values[name] for part in parts], dim=-1) for name in parts[0].values}
    columns, keys = torch.stack([part.columns for part in parts]).sum(dim=0), parts[0].keys
    found = RowReadings(values | {"count": count}, valid, included, columns, keys, k_norm)
    blocked = [part.blocked_columns for part in parts if part.blocked_columns is not None]
    if blocked:
        found.blocked_columns = torch.stack(blocked).sum(dim=0)
        found.blocked_rows = (values["blocked"] > 0.0).sum(dim=-1)
    offsets = [part.blocked_offsets for part in parts if part.blocked_offsets is not None]
    if offsets:
        found.blocked_offsets = torch.stack(offsets).sum(dim=0)
    return found


def _columns(shares: Tensor, rows: Tensor, m: int, sinks: int) -> Tensor:
    """Σ over these rows of the weight of each of m keys, and behind them of the sink: (B, heads, m or m + 1)."""
    found = (rows.to(shares.dtype).unsqueeze(-2) @ shares).squeeze(-2)
    keys = found.shape[-1] - sinks
    if keys == m:
        return found
    return torch.cat([functional.pad(found[..., :keys], (0, m - keys)), found[..., keys:]], dim=-1)


def _add_offsets(to: Tensor, shares: Tensor, rows: Tensor, positions: Sequence[int], sinks: int) -> None:
    """Add the weight of these rows at each key − query from 1 − m to m − 1 to (heads, 2m − 1); a sink has none."""
    together = (shares * rows.unsqueeze(-1)).sum(dim=0)
    keys, middle = shares.shape[-1] - sinks, to.shape[-1] // 2
    for row, position in enumerate(positions):
        first = middle - position
        to[:, first : first + keys] += together[:, row, :keys]
