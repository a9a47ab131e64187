"""The readings of single query rows: what DESIGN says of one softmax, for the rows that were chosen."""

from __future__ import annotations

import dataclasses
import functools

import torch
from torch import Tensor
from torch.nn import functional

from softscope._arguments.attention import Call
from softscope._backends.torch import dense_attention
from softscope.doctor.listen.observed_call import is_hidden
from softscope.doctor.listen.sampling import FEWEST
from softscope.doctor.read import quick
from softscope.doctor.read.kept_rows import KeptRows
from softscope.doctor.read.logits import inner, logits_given, logits_of, near, norms, number, sink_columns, still
from softscope.doctor.read.tiles import RowReadings, TileReadings, joined, tile_readings

TILE = 1 << 19  # logits at a time on a CPU: 2 MB of float32, and a few such


def read(kept: KeptRows, grad: Tensor | None) -> RowReadings:
    """All readings of the chosen rows; with the gradient of the call's result, whole, also the moving ones.

    A few rows at a time, in memory that stays in a cache, and only the keys that a causal row can see.
    """
    call = None if kept.call is None else _ready(kept.call)
    if grad is not None:
        grad = kept.observed.gradient(grad).index_select(2, kept.rows)
    count = _counts(kept, call)
    valid, included = _which(kept, count)
    k_norm = None if call is None else torch.linalg.vector_norm(call.k, dim=-1, dtype=inner(call.k))
    if call is not None and k_norm is not None and kept.weights is None and quick.offered(call):
        of_part = functools.partial(_quick_part, kept, call, 1.0 / k_norm.clamp_min(torch.finfo(k_norm.dtype).tiny))
    else:
        of_part = functools.partial(_part, kept, call, k_norm)
    parts = [of_part(part, grad, count[:, :, part], included[:, :, part]) for part in _tiles(kept)]
    return joined(parts, count, valid, included, None if k_norm is None else _over_keys(k_norm, kept))


def _ready(call: Call) -> Call:
    """A key head for each query head, in the dtype and the layout that every tile needs, made once."""
    call = call.spread()
    dtype = inner(call.q)
    k, v = (None if x is None else x.to(dtype).contiguous() for x in (call.k, call.v))
    return dataclasses.replace(call, k=k, v=v)


def _over_keys(k_norm: Tensor, kept: KeptRows) -> Tensor:
    """The mean over keys that anybody sees, (B, heads)."""
    if kept.known_keys is None or kept.known_keys.shape[-1] != k_norm.shape[-1]:
        return k_norm.mean(dim=-1)
    known = kept.known_keys[:, None].to(k_norm.dtype)
    return (k_norm * known).sum(dim=-1) / known.sum(dim=-1)


def _counts(kept: KeptRows, call: Call | None) -> Tensor:
    """How many keys each row sees, (B, heads, R)."""
    if kept.logits is not None:
        return (~is_hidden(kept.logits)).sum(dim=-1).to(inner(kept.logits))
    assert call is not None
    shape, m = (*call.batch, kept.observed.heads, len(kept.numbers)), kept.observed.m
    shown = call.visible_and_bias()[0]
    if shown is None:
        return torch.full(shape, float(m), dtype=inner(call.q), device=call.q.device)
    return shown.expand(*shown.shape[:-1], m).sum(dim=-1).to(inner(call.q)).expand(shape)


def _tiles(kept: KeptRows) -> list[slice]:
    like = kept.call.q if kept.weights is None and kept.call is not None else kept.weights
    assert like is not None
    many = (TILE if like.device.type == "cpu" else 64 * TILE) // (like.shape[0] * kept.observed.heads * kept.observed.m)
    rows = max(8, many)
    return [slice(first, first + rows) for first in range(0, len(kept.rows), rows)]


def _part(
    kept: KeptRows, call: Call | None, k_norm: Tensor | None,
    part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
) -> TileReadings:  # fmt: skip
    """The readings of some of the chosen rows."""
    m = kept.observed.m
    call = None if call is None else call.some(part)
    if kept.weights is None:
        assert call is not None
        call = near(call, kept.last_key(part))
        found = logits_of(call, slope=grad is not None)
    else:
        found = logits_given(kept, call, part)
    dtype = found.x.dtype
    values: dict[str, Tensor] = {}
    if call is not None and k_norm is not None:
        values |= norms(call, found, count, k_norm[..., : call.k.shape[-2]])
    more, weights, lse = still(found, count, kept.observed.alpha)
    values |= more
    sinks, moving = 0, None
    behind = sink_columns(call, found.x) or 0 if kept.weights is not None and call is not None else 0
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
        if kept.weights is None:
            assert call is not None
            assert call.v is not None
            dP = dP @ call.v.to(dtype).transpose(-1, -2)
        dP = functional.pad(dP, (0, sinks)) if sinks else dP
        moving = dense_attention.from_weights(shares, dP, slope, hidden, count + sinks, kept.observed.alpha)
    return tile_readings(values, moving, shares, included, kept.positions(part), (m - behind, sinks + behind))


def _quick_part(
    kept: KeptRows, call: Call, lengths: Tensor,
    part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
) -> TileReadings:  # fmt: skip
    """The same by the engine; lengths: 1/|k|."""
    call = near(call.some(part), kept.last_key(part))
    values, moving, weights = quick.read(call, None if grad is None else grad[:, :, part], count, lengths)
    return tile_readings(values, moving, weights, included, kept.positions(part), (kept.observed.m, 0))


def _which(kept: KeptRows, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if kept.known_keys is not None and kept.observed.n == kept.observed.m:
        valid = valid & kept.known_keys[:, kept.rows][:, None]
    richest = count.masked_fill(~valid, 0.0).amax(dim=(-2, -1), keepdim=True)
    return valid, valid & (count > 1) & (2 * count >= richest.clamp(max=2 * FEWEST))
