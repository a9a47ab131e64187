"""Attention layers that `softscope.tasks` lacks: additive scores, and weights from an arbitrary function."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

import softscope
from softscope.tasks import RecallModel
from softscope.tasks.layer import seeded_linear

if TYPE_CHECKING:
    from collections.abc import Callable


class _Layer(nn.Module):
    """The four linear maps of one head; subclasses decide how to compute the weights."""

    def __init__(self, d: int, seed: int) -> None:
        super().__init__()
        self.d, self.generator = d, torch.Generator().manual_seed(seed)
        self.w_q, self.w_k, self.w_v, self.w_o = (seeded_linear(d, d, self.generator) for _ in range(4))


class Weighted(_Layer):
    """Scaled dot-product attention with weights `f(q·k/√d)` along the last axis."""

    attend = None  # no readings: they only support softmax and entmax

    def __init__(self, d: int, seed: int, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__(d, seed)
        self.f = f

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend from (batch, n, d) over (batch, m, d)."""
        logits = self.w_q(query) @ self.w_k(key).transpose(-1, -2) / math.sqrt(self.d)
        mixed: Tensor = self.w_o(self.f(logits) @ self.w_v(value))
        return mixed


class Additive(_Layer):
    """Attention with logits v_a·tanh(W_Q q + W_K k), unscaled; hidden width d, v_a ~ N(0, 1/d)."""

    def __init__(self, d: int, seed: int) -> None:
        super().__init__(d, seed)
        self.v_a = nn.Parameter(torch.randn(d, generator=self.generator) / math.sqrt(d))

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend from (batch, n, d) over (batch, m, d)."""
        mixed, *_ = self.attend(query, key, value)
        joined: Tensor = self.w_o(mixed.transpose(-3, -2).flatten(-2))
        return joined

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return what the readings need; these logits are no dot product, so they go in as a mask added to q·k = 0."""
        hidden = torch.tanh(self.w_q(query)[:, :, None] + self.w_k(key)[:, None])
        logits = (hidden @ self.v_a)[:, None]
        v = self.w_v(value)[:, None]
        q = torch.zeros(*query.shape[:-1], 1)[:, None]
        k = torch.zeros(*key.shape[:-1], 1)[:, None]
        return softscope.softmax(logits) @ v, q, k, v, {"mask": logits.detach()}


def recall_model(d: int, layer: nn.Module, *, vocabulary: int, seed: int) -> RecallModel:
    """Build a `RecallModel` with a different attention layer."""
    model = RecallModel(d=d, vocabulary=vocabulary, seed=seed)
    model.attention = layer  # type: ignore[assignment]
    return model
