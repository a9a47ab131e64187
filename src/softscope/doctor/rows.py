"""The readings of single query rows: what DESIGN says of one softmax, for the rows that were chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softscope._attention_call import Call
from softscope._torch import written_out
from softscope.doctor.chosen import Chosen
from softscope.doctor.logits import inner, is_hidden, logits_given, logits_of, near, norms, number, still
from softscope.doctor.sampling import FEWEST

TILE = 1 << 18  # logits at a time on a CPU: 1 MB of float32, and a few such


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


def read(chosen: Chosen, grad: Tensor | None) -> RowReadings:
    """All readings of the chosen rows; with the gradient of the call's result, whole, also the moving ones.

    A few rows at a time, in memory that stays in a cache, and only the keys that a causal row can see.
    """
    call = None if chosen.call is None else _ready(chosen.call)
    if grad is not None:
        grad = chosen.seen.gradient(grad).index_select(2, chosen.rows)
    count = _counts(chosen, call)
    valid, included = _which(chosen, count)
    k_norm = None if call is None else torch.linalg.vector_norm(call.k, dim=-1, dtype=inner(call.k))
    parts = [
        _part(chosen, call, part, grad, count[:, :, part], included[:, :, part], k_norm) for part in _tiles(chosen)
    ]
    return _joined(parts, count, valid, included, None if k_norm is None else _over_keys(k_norm, chosen))


def _ready(call: Call) -> Call:
    """A key head for each query head, in the dtype and the layout that every tile needs, made once."""
    call = call.spread()
    dtype = inner(call.q)
    k, v = (None if x is None else x.to(dtype).contiguous() for x in (call.k, call.v))
    return dataclasses.replace(call, k=k, v=v)


def _over_keys(k_norm: Tensor, chosen: Chosen) -> Tensor:
    """The mean over keys that anybody sees, (B, heads)."""
    if chosen.known_keys is None or chosen.known_keys.shape[-1] != k_norm.shape[-1]:
        return k_norm.mean(dim=-1)
    known = chosen.known_keys[:, None].to(k_norm.dtype)
    return (k_norm * known).sum(dim=-1) / known.sum(dim=-1)


def _counts(chosen: Chosen, call: Call | None) -> Tensor:
    """How many keys each row sees, (B, heads, R)."""
    if chosen.logits is not None:
        return (~is_hidden(chosen.logits)).sum(dim=-1).to(inner(chosen.logits))
    assert call is not None
    shape, m = (*call.batch, chosen.seen.heads, len(chosen.numbers)), chosen.seen.m
    shown = call.visible_and_bias()[0]
    if shown is None:
        return torch.full(shape, float(m), dtype=inner(call.q), device=call.q.device)
    return shown.expand(*shown.shape[:-1], m).sum(dim=-1).to(inner(call.q)).expand(shape)


def _tiles(chosen: Chosen) -> list[slice]:
    like = chosen.call.q if chosen.weights is None and chosen.call is not None else chosen.weights
    assert like is not None
    many = (TILE if like.device.type == "cpu" else 64 * TILE) // (like.shape[0] * chosen.seen.heads * chosen.seen.m)
    rows = max(8, many)
    return [slice(first, first + rows) for first in range(0, len(chosen.rows), rows)]


def _joined(
    parts: list[_Part], count: Tensor, valid: Tensor, included: Tensor, k_norm: Tensor | None
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


class _Part(NamedTuple):
    """What a tile of rows says."""

    values: dict[str, Tensor]
    columns: Tensor
    keys: int
    blocked_columns: Tensor | None
    blocked_offsets: Tensor | None


def _part(
    chosen: Chosen, call: Call | None, part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
    k_norm: Tensor | None,
) -> _Part:  # fmt: skip
    """The readings of some of the chosen rows."""
    m = chosen.seen.m
    call = None if call is None else call.some(part)
    if chosen.weights is None:
        assert call is not None
        call = near(call, chosen.last_key(part))
        found = logits_of(call, slope=grad is not None)
    else:
        found = logits_given(chosen, call, part)
    dtype = found.x.dtype
    values: dict[str, Tensor] = {}
    if call is not None and k_norm is not None:
        values |= norms(call, found, count, k_norm[..., : call.k.shape[-2]])
    more, weights, lse = still(found, count, chosen.seen.alpha)
    values |= more
    sinks, columns, offsets = 0, None, None
    shares, hidden, slope = weights, found.hidden, found.slope
    if call is not None and call.sink is not None:
        sinks = 1
        share = torch.sigmoid(number(call.sink, dtype, lse.device) - lse)
        shares = torch.cat([weights * (1.0 - share).unsqueeze(-1), share.unsqueeze(-1)], dim=-1)
        # A sink is one more key, that everybody sees, with gradient 0.
        hidden = (
            None if hidden is None else functional.pad(hidden.expand(*hidden.shape[:-1], weights.shape[-1]), (0, 1))
        )
        slope = None if slope is None else functional.pad(slope, (0, 1), value=1.0)
    if grad is not None:
        dP = grad[:, :, part].to(dtype)
        if chosen.weights is None:
            assert call is not None
            assert call.v is not None
            dP = dP @ call.v.to(dtype).transpose(-1, -2)
        dP = functional.pad(dP, (0, sinks)) if sinks else dP
        moving = written_out.from_weights(shares, dP, slope, hidden, count + sinks, chosen.seen.alpha)
        values |= {name: value for name, value in moving._asdict().items() if name != "blocked"}
        blocked = moving.blocked & included
        values["blocked"] = blocked.to(dtype)
        columns = _columns(shares, blocked, m, sinks)
        positions = chosen.positions(part)
        offsets = None if positions is None else _offsets(shares, blocked, positions, m, sinks)
    return _Part(values, _columns(shares, included, m, sinks), m, columns, offsets)


def _which(chosen: Chosen, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if chosen.known_keys is not None and chosen.seen.n == chosen.seen.m:
        valid = valid & chosen.known_keys[:, chosen.rows][:, None]
    richest = count.masked_fill(~valid, 0.0).amax(dim=(-2, -1), keepdim=True)
    return valid, valid & (count > 1) & (2 * count >= richest.clamp(max=2 * FEWEST))


def _columns(shares: Tensor, rows: Tensor, m: int, sinks: int) -> Tensor:
    """Σ over these rows of the weight of each of m keys, and behind them of the sink: (B, heads, m or m + 1)."""
    found = (rows.to(shares.dtype).unsqueeze(-2) @ shares).squeeze(-2)
    keys = found.shape[-1] - sinks
    if keys == m:
        return found
    return torch.cat([functional.pad(found[..., :keys], (0, m - keys)), found[..., keys:]], dim=-1)


def _offsets(shares: Tensor, rows: Tensor, positions: Sequence[int], m: int, sinks: int) -> Tensor:
    """Σ over these rows of the weight at each key − query from 1 − m to m − 1: (heads, 2m − 1); a sink has none."""
    found = shares.new_zeros(shares.shape[1], 2 * m - 1)
    if not rows.any():
        return found
    together = (shares * rows.unsqueeze(-1)).sum(dim=0)
    keys = shares.shape[-1] - sinks
    for row, position in enumerate(positions):
        first = m - 1 - position
        found[:, first : first + keys] += together[:, row, :keys]
    return found
