"""Attention on tensors: the engine where it can access them, else tensor operations, one tile of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._backends.reference.partition import State
from softscope._backends.torch import (
    dense_attention,
    engine_attention,
    row_reading,
    sparse_attention,
    tiled_attention,
)
from softscope._backends.torch.dtypes import widest
from softscope._backends.torch.engine_memory import constants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope._arguments.attention import Call
    from softscope._backends.reference.row_reading import GradientSums


def attend(call: Call, additive: Any, statistics: bool) -> tuple[Tensor, Any]:
    """Return the weighted sum of the values, in q's dtype, and every row's statistics if requested."""
    if engine_attention.offers(call, additive):
        return engine_attention.attend(call, statistics)
    if sparse_attention.offers(call, additive):
        return sparse_attention.attend(call, statistics)
    output = tiled_attention.output(call.spread(), additive)
    return output, statistics_of_rows(call, additive) if statistics else None


def statistics_of_rows(call: Call, additive: Any) -> Any:
    """Return every row's state and largest score, or for alpha ≠ 1 a dictionary of readings."""
    with constants():
        if engine_attention.offers(call, additive):
            return engine_attention.of_rows(call)
        if sparse_attention.offers(call, additive):
            return sparse_attention.of_rows(call)
        if call.options.sparse:
            supports = [dense_attention.support(tile, additive) for tile in _tiles(call)]
            return {name: torch.cat([part[name] for part in supports], dim=-1) for name in supports[0]}
        parts = [dense_attention.partition(tile, additive) for tile in _tiles(call)]
        found = State(*(torch.cat(part, dim=-1) for part in zip(*(part[0] for part in parts), strict=True)))
        return found, torch.cat([part[1] for part in parts], dim=-1)


def gradient_sums(call: Call, grad_output: Tensor) -> GradientSums:
    """Sum up each row's demand and supply; only the rows of the call are materialised."""
    if row_reading.offers(call):
        found = row_reading.by_engine(call, grad_output)[0].gradient
        assert found is not None
        return found
    rows = zip(_tiles(call), call.tiles(), strict=True)
    with constants():
        parts = [row_reading.gradient_sums(tile, grad_output[..., part, :], widest(call.q)) for tile, part in rows]
    return type(parts[0])(*(torch.cat(found, dim=-1) for found in zip(*parts, strict=True)))


def _tiles(call: Call) -> Iterator[Call]:
    whole = call.spread()
    return (whole.of_rows(rows) for rows in whole.tiles())
