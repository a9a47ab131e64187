"""Decides whether a head is spoiled from its materialised float64 weights; uses nothing the doctor's checks use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softscope import tasks
from softscope.doctor.judge.thresholds import MANY
from softscope.doctor.listen.sampling import FEWEST

FROZEN = 0.998  # a row whose largest weight is above it has less than 0.2% of its weight left to move


@torch.no_grad()
def frozen(model: Any, batch: Any) -> set[tuple[int, int]]:
    """Layers and heads with more than 10% of their rows frozen; for recall, frozen on a key that was not asked for."""
    found = set()
    for layer, weights in enumerate(written_down(model, batch)):
        top, place = weights.max(dim=-1)  # (batch, heads, n)
        bad = top > FROZEN
        if isinstance(batch, tasks.RecallBatch):
            asked = (batch.keys[:, None] == batch.query[..., None]).double().argmax(dim=-1)
            bad = bad & (place != asked[:, None])
        else:
            bad = bad[..., FEWEST - 1 :]
        share = bad.double().mean(dim=(0, 2))
        found |= {(layer, head) for head in range(weights.shape[1]) if share[head] > MANY.value}
    return found


def written_down(model: Any, batch: Any) -> list[Tensor]:
    """The weights of every layer, (batch, heads, n, m)."""
    calls: list[tuple[tasks.Attention, Tensor, Tensor, bool]] = []

    def note(layer: tasks.Attention, given: tuple[Tensor, ...], options: dict[str, Any]) -> None:
        calls.append((layer, given[0], given[1], options.get("causal", False)))

    layers = [module for module in model.modules() if isinstance(module, tasks.Attention)]
    hooks = [layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers]
    try:
        model(*batch.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    found = []
    for layer, query, key, causal in calls:
        q, k = layer.split(layer.w_q(query)).double(), layer.split(layer.w_k(key)).double()
        logits = layer.factor * q @ k.transpose(-1, -2)
        if causal:
            n = logits.shape[-1]
            logits = logits.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        found.append(torch.softmax(logits, dim=-1))
    return found
