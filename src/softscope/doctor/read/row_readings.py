"""The readings of single query rows: the kept rows get the readings that `reference.row_reading` defines."""

from __future__ import annotations

import torch
from torch import Tensor

from softscope._backends.reference.row_reading import RowReading
from softscope._gradient_readings import GradientReadings
from softscope._partition import Partition
from softscope.doctor.listen.sampling import FEWEST
from softscope.doctor.read import seen_keys
from softscope.doctor.read.alike import alike
from softscope.doctor.read.all_keys import AllKeys, fetch, with_all_keys
from softscope.doctor.read.from_queries import FromQueries
from softscope.doctor.read.from_softmax import FromSoftmax
from softscope.doctor.read.kept_rows import KeptRows
from softscope.doctor.read.one_token import by_token
from softscope.doctor.read.same_tokens import same_keys
from softscope.doctor.read.tiles import RowReadings, Tile, by_key, joined

TILE = 1 << 20  # weights at a time on a CPU: 4 MB of float32


def read(kept: KeptRows, grad: Tensor | None, keys: AllKeys | None = None) -> RowReadings:
    """All readings of the kept rows; given the full gradient of the call's result, also what the loss asks of them.

    It works through a few rows at a time, so the memory stays in cache, and reads only the keys a causal row can see.
    """
    kept = with_all_keys(kept, fetch(kept) if keys is None else keys)
    if grad is not None:
        grad = kept.observed.gradient(grad).index_select(2, kept.rows)
    source: FromQueries | FromSoftmax
    if kept.logits is None:
        assert kept.call is not None
        source = FromQueries(kept, kept.call)
    else:
        source = FromSoftmax(kept)
    count = source.counts()
    valid, included = _which(kept, count)
    tiles, found = [], []
    for part in _slices(kept):
        tile = source.tile(part, None if grad is None else grad[:, :, part])
        found.append(by_key(tile, included[:, :, part], kept.positions(part), source.keys))
        own = tile.weights[..., : tile.weights.shape[-1] - tile.sinks]
        tile.extra.update(seen_keys.of_rows(kept, source.visible(part), own, kept.positions(part)))
        tiles.append(tile._replace(weights=tile.weights[..., :0]))  # only sums of the weights are kept
    result = joined(_values(source, tiles, count), found, source.keys, valid, included, source.over_keys())
    result.v_norm = source.over_values()
    result.of_sequences = _of_sequences(kept, source, count, grad)
    tokens = kept.observed.tokens
    if tokens is not None and result.blocked_columns is not None:
        real = kept.observed.real if kept.observed.real is not None else kept.known_keys
        columns = result.blocked_columns[..., : tokens.shape[1]]
        result.blocked_tokens = by_token(columns, tokens, real)
    return result


def _of_sequences(
    kept: KeptRows, source: FromQueries | FromSoftmax, count: Tensor, grad: Tensor | None
) -> dict[str, Tensor]:
    """Readings that are not those of a row."""
    heads = kept.observed.heads
    found = {"blind": seen_keys.blind(kept, count)}
    if grad is not None:
        found["alone"] = seen_keys.alone(count, (grad != 0.0).any(dim=-1), kept.observed.m)
    if kept.call is not None:
        keys = kept.observed.real if kept.observed.real is not None else kept.known_keys
        keys = keys if keys is not None and keys.shape[-1] == kept.call.k.shape[-2] else None
        rows = None if keys is None or kept.observed.n != kept.observed.m else keys[:, kept.rows]
        found["q_alike"] = alike(kept.call.q, centred=False, real=rows)
        found["k_alike"] = _for_queries(alike(kept.call.k, centred=True, real=keys), heads)
    known = source.keys_and_bias() if kept.observed.first else None
    if known is not None and not known[1]:
        assert kept.observed.tokens is not None
        real = kept.observed.real if kept.observed.real is not None else kept.known_keys
        real = None if real is None else real.expand(kept.observed.tokens.shape[0], -1)
        found["same_keys"] = _for_queries(same_keys(known[0], kept.observed.tokens, real), heads)
    return found


def _for_queries(of_keys: Tensor, heads: int) -> Tensor:
    """The number of each key head, for all the query heads that share it."""
    return of_keys.repeat_interleave(heads // of_keys.shape[-1], dim=-1)


def _slices(kept: KeptRows) -> list[slice]:
    size = TILE if kept.rows.device.type == "cpu" else 64 * TILE
    like = kept.logits if kept.call is None else kept.call.q
    assert like is not None
    rows = max(8, size // (like.shape[0] * kept.observed.heads * kept.observed.m))
    return [slice(first, first + rows) for first in range(0, len(kept.rows), rows)]


def _which(kept: KeptRows, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if kept.observed.real is not None and kept.observed.n == kept.observed.m:
        valid = valid & kept.observed.real[:, kept.rows][:, None]
    elif kept.known_keys is not None and kept.observed.n == kept.observed.m:
        valid = valid & kept.known_keys[:, kept.rows][:, None]
    richest = count.masked_fill(~valid, 0).amax(dim=(-2, -1), keepdim=True)
    if kept.observed.places is not None:  # it may be on another rank
        left, right = kept.observed.options.left, kept.observed.options.right
        m = kept.observed.m
        richest = torch.full_like(richest, min(m, (m if left is None else left) + (m if right is None else right) + 1))
    return valid, valid & (count > 1) & (2 * count >= richest.clamp(max=2 * FEWEST))


def _values(source: FromQueries | FromSoftmax, tiles: list[Tile], count: Tensor) -> dict[str, Tensor]:
    """One number per row for each reading."""
    reading = _together([tile.reading for tile in tiles])
    partition = Partition(reading.state, reading.highest)
    n = reading.state.n.clamp_min(1)
    spread = reading.squares / n - (reading.distance / n) ** 2
    values = {
        "sharpness": partition.sharpness,
        "jacobian_trace": partition.jacobian_trace,
        "peak": partition.peak,
        "logit_spread": spread.clamp_min(0.0).sqrt(),
        "lse_min": partition.lse,
        "count": count.to(spread.dtype),
    }
    call = source.kept.call
    if call is not None:
        q_norm = torch.linalg.vector_norm(call.q, dim=-1, dtype=spread.dtype).expand(count.shape)
        values["q_norm"] = q_norm
        if reading.aligned is not None:
            scale = torch.as_tensor(call.options.scale, dtype=spread.dtype, device=q_norm.device).abs()
            lengths = q_norm * (scale.reshape(-1, 1) if scale.ndim else scale)
            keys = (n - source.sinks if isinstance(source, FromSoftmax) else n).clamp_min(1)
            values["cosine"] = reading.aligned / lengths.clamp_min(torch.finfo(spread.dtype).tiny) / keys
            values["max_logit"] = reading.highest
    gradient = [tile.gradient for tile in tiles if tile.gradient is not None]
    for name in GradientReadings._fields if gradient else ():
        values[name] = torch.cat([getattr(found, name) for found in gradient], dim=-1)
    for name in tiles[0].extra:
        values[name] = torch.cat([tile.extra[name] for tile in tiles], dim=-1)
    return values


def _together(readings: list[RowReading]) -> RowReading:
    """Concatenate the rows of all tiles."""
    if len(readings) == 1:
        return readings[0]
    first = readings[0]
    state = type(first.state)(
        *(torch.cat(parts, dim=-1) for parts in zip(*(reading.state for reading in readings), strict=True))
    )

    def whole(name: str) -> Tensor | None:
        parts = [getattr(reading, name) for reading in readings]
        return None if parts[0] is None else torch.cat(parts, dim=-1)

    return RowReading(state, whole("highest"), whole("distance"), whole("squares"), whole("aligned"))
