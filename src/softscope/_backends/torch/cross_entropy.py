"""Cross-entropy of CPU tensors in one forward and one backward pass; the gradient is the only (rows × classes) array.

With m, c, r of the partition's state, z = c + r and p_t the weight of the target, a row's loss and its gradient are

    (1−ε)·((m − x_t)/T + log z) + ε·((m − mean x)/T + log z)          g/T·(p − ε/n),  minus g/T·(1−ε) at the target
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softscope._backends.torch import backward, losses
from softscope._backends.torch.autograd import keep, kept
from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.engine_memory import engine, flows, reachable
from softscope._backends.torch.maps import offered, softmax

_AT_ONCE = 1 << 18  # entries converted to float64 at a time, for their mean


def cross_entropy(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
    """Compute each row's loss in float64; see `losses.cross_entropy` for the definition."""
    if not (offered(x, temperature) and reachable(targets)):
        return losses.cross_entropy(x, targets, temperature, label_smoothing)
    if flows(x):
        return _CrossEntropy.apply(x, targets, temperature, label_smoothing)  # type: ignore[no-untyped-call]
    return _forward(x, targets, temperature, label_smoothing)[0]


def _forward(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> tuple[Tensor, ...]:
    """Return the losses, and what the backward pass needs of each row: m, c, r and the target's logit."""
    _, c, m, r, *_ = engine("state", x, temperature).unbind(-1)
    target = x.gather(-1, targets.unsqueeze(-1)).squeeze(-1).double()
    log_z = torch.log1p((c - 1.0) + r)  # c ≥ 1, and nearly always 1
    loss = _tempered(m, target, temperature) + log_z
    if label_smoothing:
        even = _tempered(m, _mean(x), temperature) + log_z
        loss = (1.0 - label_smoothing) * loss + label_smoothing * even
    return loss, m, c, r, target


def _tempered(m: Tensor, below: Tensor, temperature: Any) -> Tensor:
    """Compute (m − below)/T from halves: the distance may overflow float64 even if the quotient does not."""
    if isinstance(temperature, float) and temperature == 1.0:
        return m - below
    half = 0.5 * (temperature.squeeze(-1).double() if isinstance(temperature, Tensor) else temperature)
    return (0.5 * m - 0.5 * below) / half


def _mean(x: Tensor) -> Tensor:
    """Compute each row's mean in float64, a few rows at a time: all of x in float64 would be the largest array."""
    n = x.shape[-1]
    parts = torch.split(x.reshape(-1, n), max(1, _AT_ONCE // n))
    return torch.cat([part.double().mean(dim=-1) for part in parts]).reshape(x.shape[:-1])


class _CrossEntropy(torch.autograd.Function):
    """x, targets, T, ε → losses."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
        loss, *rows = _forward(x, targets, temperature, label_smoothing)
        keep(ctx, temperature, x, targets, *rows)
        ctx.label_smoothing = label_smoothing
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        temperature, x, targets, *rows = kept(ctx)
        if backward.unseen(x, gradient):
            slope = _slope(x, targets, temperature, ctx.label_smoothing, gradient, *rows)
        else:
            slope = _visible_slope(x, targets, temperature, ctx.label_smoothing, gradient)
        return slope, None, None, None


def _slope(
    x: Tensor,
    targets: Tensor,
    temperature: Any,
    epsilon: float,
    g: Tensor,
    m: Tensor,
    c: Tensor,
    r: Tensor,
    x_t: Tensor,
) -> Tensor:
    """Compute the gradient with the scaled-weights kernel, and at the target in a form that does not cancel."""
    t = temperature.squeeze(-1).double() if isinstance(temperature, Tensor) else torch.full_like(m, temperature)
    z, a, share = c + r, g / t, epsilon / x.shape[-1]
    slope = backward.scaled_weights(x, torch.stack([t, m, z, a, -share * a], dim=-1))
    # If the target has nearly all the weight, 1 − p_t has no digits left, but the sum of the other weights does.
    others = torch.where(x_t == m, (c - 1.0) + r, z - torch.exp((x_t - m) / t))
    at_target = a * (epsilon - share - others / z)
    slope.scatter_(-1, targets.unsqueeze(-1), at_target.unsqueeze(-1).to(x.dtype))
    unasked = g == 0.0
    if bool(unasked.any()):
        slope[unasked] = 0.0  # an ignored row may hold NaN
    return slope


def _visible_slope(x: Tensor, targets: Tensor, temperature: Any, epsilon: float, g: Tensor) -> Tensor:
    """Compute the gradient with operations that autograd can differentiate again."""
    wide, at = row_dtype(x), targets.unsqueeze(-1)
    p = softmax(x.to(wide), temperature, None)
    pulled = p.scatter_add(-1, at, torch.full_like(at, epsilon - 1.0, dtype=wide)) - epsilon / x.shape[-1]
    return (pulled * (g.to(wide).unsqueeze(-1) / like(temperature, wide))).to(x.dtype)
