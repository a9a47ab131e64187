"""Reads rows from the logits and weights of an explicit softmax in the model; q and k may be known too."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor

from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope._backends.torch import row_reading
from softscope._backends.torch.dense_attention import logits as logits_of
from softscope._backends.torch.row_reading import computing
from softscope._gradient_readings import readings_of
from softscope.doctor.read import not_softmax
from softscope.doctor.read.kept_rows import KeptRows
from softscope.doctor.read.tiles import Tile

BIAS = 1e-2  # of the largest q·k: more than rounding to half precision leaves between it and the logits


class FromSoftmax:
    """The kept rows of an explicit softmax; the gradient is that of the weights."""

    def __init__(self, kept: KeptRows) -> None:
        assert kept.logits is not None
        assert kept.weights is not None
        self.kept, self.logits, self.weights = kept, kept.logits, kept.weights
        self.hidden = logit_is_hidden(kept.logits)
        self.call, behind = None, 0
        if kept.call is not None:
            # With q and k known, one column more than there are keys is a sink after them; more columns mean another
            # softmax.
            behind = kept.logits.shape[-1] - kept.call.k.shape[-2]
            options = dataclasses.replace(kept.call.options, mask=None, left=None, right=None)
            self.call = dataclasses.replace(kept.call, options=options).spread() if behind in (0, 1) else None
        self.sinks = behind if self.call is not None else 0
        self.keys = kept.observed.m - self.sinks
        self._biased = False
        self.k_norm = self.key_lengths = None
        if self.call is not None:
            self.k_norm = torch.linalg.vector_norm(self.call.k, dim=-1, dtype=computing(self.call.k))
            self.key_lengths = 1.0 / self.k_norm.clamp_min(torch.finfo(self.k_norm.dtype).tiny)

    def counts(self) -> Tensor:
        """Number of visible keys per row, (B, heads, R)."""
        return (~self.hidden).sum(dim=-1)

    def visible(self, part: slice) -> Tensor | None:
        """Which keys these rows see, (B, heads, rows, keys)."""
        return ~self.hidden[:, :, part][..., : self.keys]

    def keys_and_bias(self) -> tuple[Tensor, bool] | None:
        """The keys, and whether something that differs from key to key is added to q·k; None if q and k are unknown."""
        return None if self.call is None else (self.call.k, self._biased)

    def tile(self, part: slice, grad: Tensor | None) -> Tile:
        """Read some of the rows."""
        x, visible = self.logits[:, :, part], ~self.hidden[:, :, part]
        x = x.to(computing(x))
        weights = self.weights[:, :, part].to(x.dtype)
        reading = row_reading.of_logits(x, visible)
        extra = {"twice": not_softmax.twice(self.logits[:, :, part], visible)}
        if self.call is not None and self.key_lengths is not None:
            scores = logits_of(self.call.of_rows(part), None, x.dtype)[0]
            hidden = ~visible[..., : self.keys]
            aligned = (scores * self.key_lengths.unsqueeze(-2)).abs().masked_fill(hidden, 0.0).sum(dim=-1)
            mine = x[..., : self.keys]
            extra["dropped"] = not_softmax.dropped(mine, scores, ~hidden)
            away = (mine - scores).masked_fill(hidden, 0.0).abs().amax()
            self._biased |= bool(away > BIAS * scores.masked_fill(hidden, 0.0).abs().amax())
            reading = reading._replace(highest=scores.masked_fill(hidden, -math.inf).amax(dim=-1), aligned=aligned)
        gradient = None
        if grad is not None:
            sums = row_reading.gradient_sums_of(weights, grad.to(x.dtype), None, visible, 1.0)
            gradient = readings_of(sums)
        return Tile(reading, gradient, weights, self.sinks, extra)

    def over_keys(self) -> Tensor | None:
        """Mean norm of the keys that at least one query sees, (B, heads); None if unknown."""
        return None if self.k_norm is None else self.kept.over_keys(self.k_norm)

    def over_values(self) -> Tensor | None:
        """The same of the values; None if they are unknown."""
        v = None if self.call is None else self.call.v
        if v is None or v.shape[-2] != self.keys:
            return None
        return self.kept.over_keys(torch.linalg.vector_norm(v, dim=-1, dtype=computing(v)))
