"""The logits of some query rows, and what they say without a loss."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from softscope._attention_call import Call
from softscope._torch import written_out
from softscope._torch.jacobian import sensitivity
from softscope.doctor.chosen import Chosen
from softscope.doctor.seen import HIDDEN


@dataclasses.dataclass
class Logits:
    """The logits of some rows over the keys they may see, (B, heads, rows, keys)."""

    x: Tensor  # −inf where hidden; may be written into
    scores: Tensor | None  # before cap and mask, where they are others
    hidden: Tensor | None  # broadcasts to x, None for nothing hidden
    slope: Tensor | None = None
    weights: Tensor | None = None


def logits_of(call: Call, slope: bool) -> Logits:
    """From q and k."""
    dtype = inner(call.q)
    scores = (call.q.to(dtype) * number(call.scale, dtype, call.q.device)) @ call.k.to(dtype).transpose(-1, -2)
    shown, bias = call.visible_and_bias()
    hidden = None if shown is None else ~shown
    x, curve = scores, None
    if call.softcap is not None:
        x = call.softcap * torch.tanh(scores / call.softcap)
        curve = torch.cosh(scores / call.softcap) ** -2.0 if slope else None
    if bias is not None:
        x = x + bias.to(dtype)
    other = None if x is scores else scores
    if hidden is not None:
        x = x.masked_fill_(hidden, -math.inf)
    return Logits(x, other, hidden, curve)


def logits_given(chosen: Chosen, call: Call | None, part: slice) -> Logits:
    """As an explicit softmax got them; with the scores of q and k where these are known."""
    assert chosen.logits is not None
    assert chosen.weights is not None
    given, scores = chosen.logits[:, :, part], None
    hidden = is_hidden(given)
    x = given.to(inner(given)).masked_fill(hidden, -math.inf)
    if call is not None and call.k.shape[-2] == x.shape[-1]:
        scores = logits_of(dataclasses.replace(call, mask=None, left=None, right=None), slope=False).x.to(x.dtype)
    return Logits(x, scores, hidden, None, chosen.weights[:, :, part].to(x.dtype))


def near(call: Call, last: int | None) -> Call:
    """The call over the keys up to the last that any of its rows can see."""
    if last is None or last >= call.k.shape[-2]:
        return call
    mask = call.mask
    if mask is not None and mask.ndim and mask.shape[-1] != 1:
        mask = mask[..., :last]
    v = None if call.v is None else call.v[..., :last, :]
    return dataclasses.replace(call, k=call.k[..., :last, :], v=v, mask=mask)


def still(found: Logits, count: Tensor, alpha: float) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """What needs no loss; the weights over the keys; and the lse. Writes into the logits."""
    x, n = found.x, count.clamp_min(1.0)
    sparse = None
    if alpha != 1.0:
        sparse = written_out.weights(x, x != -math.inf, None, alpha)
    highest = x.amax(dim=-1, keepdim=True)
    highest = highest.masked_fill(highest == -math.inf, 0.0)
    below = x.sub_(highest)
    e = torch.exp(below)
    if found.hidden is not None:
        below.masked_fill_(found.hidden, 0.0)
    z = e.sum(dim=-1).clamp_min(torch.finfo(x.dtype).tiny)
    lse = highest.squeeze(-1) + torch.log(z)
    spread = torch.linalg.vector_norm(below, dim=-1) ** 2 / n - (below.sum(dim=-1) / n) ** 2
    if sparse is None:
        # exp underflows where the distance is large, and 0·finite is 0.
        entropy = torch.log(z) - below.mul_(e).sum(dim=-1) / z
        trace = 1.0 - (torch.linalg.vector_norm(e, dim=-1) / z) ** 2
        peak = 1.0 / z
        weights = e.div_(z.unsqueeze(-1)) if found.weights is None else found.weights
    else:
        weights, s = sparse, sensitivity(sparse, alpha)
        total = s.sum(dim=-1)
        entropy = -torch.special.xlogy(weights, weights).sum(dim=-1)
        trace = total - (s * s).sum(dim=-1) / total.clamp_min(torch.finfo(x.dtype).tiny)
        peak = weights.amax(dim=-1)
        lse = torch.full_like(lse, math.nan)
    values = {
        "sharpness": torch.where(count > 1, 1.0 - entropy / torch.log(n), torch.zeros_like(entropy)),
        "jacobian_trace": trace.clamp_min(0.0),
        "peak": peak,
        "logit_spread": spread.clamp_min(0.0).sqrt(),
        "lse_min": lse,
    }
    return values, weights, lse


def norms(call: Call, found: Logits, count: Tensor, k_norm: Tensor) -> dict[str, Tensor]:
    """The lengths of q, how q and k are aligned, and the largest score."""
    dtype = found.x.dtype
    q_norm = torch.linalg.vector_norm(call.q, dim=-1, dtype=dtype)
    values = {"q_norm": q_norm.expand(count.shape)}
    scores = found.scores
    if scores is None and found.weights is None:
        scores = found.x
    if scores is not None:
        hidden, other = found.hidden, scores is not found.x and found.hidden is not None
        shown = scores.masked_fill(hidden, -math.inf) if other and hidden is not None else scores
        values["max_logit"] = shown.amax(dim=-1)
        scale = number(call.scale, dtype, call.q.device)
        tiny = torch.finfo(dtype).tiny
        aligned = scores / k_norm.unsqueeze(-2).clamp_min(tiny)
        if hidden is not None:
            aligned.masked_fill_(hidden, 0.0)
        total = torch.linalg.vector_norm(aligned, ord=1, dim=-1)
        lengths = (q_norm * scale.abs().reshape(-1, 1) if scale.ndim else q_norm * scale.abs()).clamp_min(tiny)
        values["cosine"] = total / lengths / count.clamp_min(1)
    return values


def is_hidden(logits: Tensor) -> Tensor:
    """Where a mask was added to logits."""
    return logits <= max(HIDDEN, torch.finfo(logits.dtype).min / 2)


def inner(x: Tensor) -> torch.dtype:
    """What readings of x are computed in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def number(x: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number, or one per head, as a tensor."""
    return x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype, device=device)
