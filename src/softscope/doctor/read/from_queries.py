"""Reads rows from q and k: with the engine's kernel, or with tensor operations on other devices and for entmax."""

from __future__ import annotations

import torch
from torch import Tensor

from softscope._arguments.attention import Call
from softscope._backends.torch import dense_attention, row_reading
from softscope._backends.torch.row_reading import computing
from softscope._gradient_readings import readings_of
from softscope._partition import Partition
from softscope.doctor.read.kept_rows import KeptRows
from softscope.doctor.read.tiles import Tile


class FromQueries:
    """The kept rows of a call whose q and k are known."""

    def __init__(self, kept: KeptRows, call: Call) -> None:
        self.kept, self.keys = kept, kept.observed.m
        self.by_engine = row_reading.offers(call)
        self.call = call if self.by_engine else call.spread()
        self.k_norm = torch.linalg.vector_norm(self.call.k, dim=-1, dtype=computing(call.k))
        self.key_lengths = 1.0 / self.k_norm.clamp_min(torch.finfo(self.k_norm.dtype).tiny)

    def counts(self) -> Tensor:
        """Number of visible keys per row, (B, heads, R)."""
        shape, m = (*self.call.batch, self.kept.observed.heads, len(self.kept.numbers)), self.keys
        shown = self.call.visible_and_bias()[0]
        if shown is None:
            return torch.full(shape, m, device=self.call.q.device)
        return shown.expand(*shown.shape[:-1], m).sum(dim=-1).expand(shape)

    def visible(self, part: slice) -> Tensor | None:
        """Which keys these rows see, broadcastable to (B, heads, rows, keys up to the last one); None if all."""
        return self.call.of_rows(part).of_keys(self.kept.last_key(part)).visible_and_bias()[0]

    def keys_and_bias(self) -> tuple[Tensor, bool] | None:
        """The keys, and whether a bias that differs from key to key is added to the logits."""
        bias = self.call.visible_and_bias()[1]
        return self.call.k, bias is not None and bool((bias != 0.0).any())

    def tile(self, part: slice, grad: Tensor | None) -> Tile:
        """Read some of the rows, over the keys they can see."""
        last = self.kept.last_key(part)
        call, lengths = self.call.of_rows(part).of_keys(last), self.key_lengths[..., :last]
        sink, extra = call.options.sink, {}
        if self.by_engine:
            reading, weights = row_reading.by_engine(call, grad, key_lengths=lengths, want_weights=True)
            assert weights is not None
            if sink is not None:
                # The sink's share of the weight is the sigmoid of its logit minus the lse of the keys.
                share = torch.sigmoid(sink - Partition(reading.state, reading.highest).lse)
                weights = torch.cat([weights, share.unsqueeze(-1).to(weights.dtype)], dim=-1)
        else:
            reading, weights = row_reading.dense(call, grad, computing(call.q), key_lengths=lengths)
            if call.options.sparse:
                extra = _sparse(call, reading.state.n)
        gradient = None if reading.gradient is None else readings_of(reading.gradient)
        return Tile(reading, gradient, weights, 0 if sink is None else 1, extra)

    def over_keys(self) -> Tensor:
        """Mean norm of the keys that at least one query sees, (B, heads)."""
        return self._of_heads(self.k_norm)

    def over_values(self) -> Tensor | None:
        """The same of the values; None if they are unknown."""
        v = self.call.v
        if v is None:
            return None
        return self._of_heads(torch.linalg.vector_norm(v, dim=-1, dtype=computing(v)))

    def _of_heads(self, norms: Tensor) -> Tensor:
        found = self.kept.over_keys(norms)
        return found.repeat_interleave(self.kept.observed.heads // found.shape[-1], dim=-1)


def _sparse(call: Call, count: Tensor) -> dict[str, Tensor]:
    """Readings of sparse weights, which have no partition function."""
    support = dense_attention.support(call, None)
    several = count > 1
    full = torch.log(torch.where(several, count, 2).to(support["entropy"].dtype))
    return {
        "sharpness": torch.where(several, 1.0 - support["entropy"] / full, 0.0),
        "jacobian_trace": support["jacobian_trace"],
        "peak": support["peak"],
        "lse_min": torch.full_like(full, torch.nan),
    }
