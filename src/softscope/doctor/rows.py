"""The readings of single query rows: what DESIGN says of one softmax, for the rows that were chosen."""

from __future__ import annotations

import dataclasses
import functools

import torch
from torch import Tensor
from torch.nn import functional

from softscope._attention_call import Call
from softscope._torch import written_out
from softscope.doctor import quick
from softscope.doctor.chosen import Chosen
from softscope.doctor.logits import inner, logits_given, logits_of, near, norms, number, sink_columns, still
from softscope.doctor.parts import Part, RowReadings, joined, part_of
from softscope.doctor.sampling import FEWEST
from softscope.doctor.seen import is_hidden

TILE = 1 << 19  # logits at a time on a CPU: 2 MB of float32, and a few such


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
    if call is not None and k_norm is not None and chosen.weights is None and quick.offered(call):
        of_part = functools.partial(_quick_part, chosen, call, 1.0 / k_norm.clamp_min(torch.finfo(k_norm.dtype).tiny))
    else:
        of_part = functools.partial(_part, chosen, call, k_norm)
    parts = [of_part(part, grad, count[:, :, part], included[:, :, part]) for part in _tiles(chosen)]
    return joined(parts, count, valid, included, None if k_norm is None else _over_keys(k_norm, chosen))


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


def _part(
    chosen: Chosen, call: Call | None, k_norm: Tensor | None,
    part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
) -> Part:  # fmt: skip
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
    sinks, moving = 0, None
    behind = sink_columns(call, found.x) or 0 if chosen.weights is not None and call is not None else 0
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
    return part_of(values, moving, shares, included, chosen.positions(part), (m - behind, sinks + behind))


def _quick_part(
    chosen: Chosen, call: Call, lengths: Tensor,
    part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
) -> Part:  # fmt: skip
    """The same by the engine; lengths: 1/|k|."""
    call = near(call.some(part), chosen.last_key(part))
    values, moving, weights = quick.read(call, None if grad is None else grad[:, :, part], count, lengths)
    return part_of(values, moving, weights, included, chosen.positions(part), (chosen.seen.m, 0))


def _which(chosen: Chosen, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if chosen.known_keys is not None and chosen.seen.n == chosen.seen.m:
        valid = valid & chosen.known_keys[:, chosen.rows][:, None]
    richest = count.masked_fill(~valid, 0.0).amax(dim=(-2, -1), keepdim=True)
    return valid, valid & (count > 1) & (2 * count >= richest.clamp(max=2 * FEWEST))
