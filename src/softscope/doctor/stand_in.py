"""Readings of a `softscope.tasks.RecallModel` while it trains, with the interface of the probe.

The built-in patients are all it knows: plain scaled attention, nothing masked. It goes when `softscope.probe`, which
sees any model, is there.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

import softscope
from softscope.doctor.snapshot import History, Site, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.tasks import RecallModel


class Scope:
    """`with Scope(model, every=10) as scope`: after each backward pass, `scope.step(loss=…)`."""

    def __init__(self, model: RecallModel, *, every: int = 1) -> None:
        self.layer, self.every = model.attention, every
        self.seen: dict[str, Any] = {}
        self.snapshots: list[Snapshot] = []
        self.callbacks: list[Callable[[Snapshot], None]] = []
        self.steps = 0

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self.hooks = [
            getattr(self.layer, f"w_{name}").register_forward_hook(
                lambda _, __, out, name=name: self.seen.__setitem__(name, out.detach())
            )
            for name in "qkv"
        ]
        self.hooks.append(self.layer.w_o.register_full_backward_hook(self._went_back))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()

    def _went_back(self, _module: Any, grads: Any, _outer: Any) -> None:
        self.seen["grad"] = grads[0]

    def on_snapshot(self, callback: Callable[[Snapshot], None]) -> None:
        """Call back with every snapshot."""
        self.callbacks.append(callback)

    def step(self, *, loss: float) -> None:
        """One step is done; every so many of them are read."""
        if self.steps % self.every == 0:
            q, k, v, grad = (self.layer.split(self.seen[name]) for name in ("q", "k", "v", "grad"))
            found = readings(q, k, v, grad, self.layer.factor)
            self.snapshots.append(Snapshot(self.steps, time.monotonic() - self.began, loss, found))
            for callback in self.callbacks:
                callback(self.snapshots[-1])
        self.steps += 1

    def history(self) -> History:
        """All that was read."""
        heads, size = self.layer.heads, self.layer.w_q.out_features // self.layer.heads
        site = Site("attention", "sdpa", heads, heads, self.layer.factor, size)
        return History((site,), tuple(self.snapshots))


def readings(q: Any, k: Any, v: Any, grad: Any, scale: float) -> dict[str, Any]:
    """Every reading of one call, (batch, heads, n, d), as (1, heads) arrays."""
    part: Any = softscope.attention_partition(q, k, scale=scale)
    back = softscope.gradient_readings(q, k, v, grad, scale=scale)
    logits = (q @ k.transpose(-1, -2)).double() * scale
    weights = torch.softmax(logits, -1)
    cosine = torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).transpose(-1, -2)
    columns = weights.sum((0, 2))  # (heads, keys)
    blocked = back.blocked
    held = (weights * blocked[..., None]).sum((0, 2))
    found = {
        "sharpness": _mean(part.sharpness),
        "jacobian_trace": _mean(part.jacobian_trace),
        "peak": _mean(part.peak),
        "max_logit": part.max_logit.amax((0, 2)),
        "logit_spread": _mean(logits.std(-1, correction=0)),
        "sink_column": columns.argmax(-1),
        "sink_mass": columns.amax(-1) / columns.sum(-1),
        "q_norm": _mean(q.norm(dim=-1)),
        "k_norm": _mean(k.norm(dim=-1)),
        "cosine": _mean(cosine.abs().mean(-1)),
        "lse_min": part.lse.amin((0, 2)),
        "count": _mean(part.count.double()),
        "demand": _mean(back.demand),
        "supply": _mean(back.supply),
        "transmission": _mean(back.transmission),
        "transmission:median": back.transmission.transpose(0, 1).flatten(1).nanmedian(-1).values,
        "regret_ratio": _mean(back.regret_ratio),
        "blocked": _mean(blocked.double()),
        "blocked_mass": held.amax(-1) / held.sum(-1),
    }
    found["advantage"], found["advantage_error"] = _advantage(back.advantage, blocked)
    return {name: np.asarray(value, np.float32)[None] for name, value in found.items()}


def _mean(x: Any) -> Any:
    return x.nanmean((0, 2))


def _advantage(advantage: Any, blocked: Any) -> tuple[Any, Any]:
    """Over the blocked rows where a head has any; its error counts sequences, (batch, heads, n)."""
    some = blocked.any(-1).any(0)[:, None]
    by_sequence = torch.where(blocked | ~some, advantage, math.nan).nanmean(-1)
    taken = (~by_sequence.isnan()).sum(0)
    mean = by_sequence.nanmean(0)
    variance = (by_sequence - mean).square().nansum(0) / (taken - 1)
    return mean, (variance / taken).sqrt()
