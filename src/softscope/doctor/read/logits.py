"""The logits of some query rows, and what they say without a loss."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softscope._arguments.attention import Call
from softscope._backends.torch import dense_attention
from softscope._backends.torch.tensor_jacobian import sensitivity
from softscope.doctor.listen.observed_call import is_hidden
from softscope.doctor.read.kept_rows import KeptRows


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


def logits_given(kept: KeptRows, call: Call | None, part: slice) -> Logits:
    """As an explicit softmax got them; with the scores of q and k where these are known."""
    assert kept.logits is not None
    assert kept.weights is not None
    given, scores = kept.logits[:, :, part], None
    hidden = is_hidden(given)
    x = given.to(inner(given)).masked_fill(hidden, -math.inf)
    if call is not None and sink_columns(call, x) is not None:
        scores = logits_of(dataclasses.replace(call, mask=None, left=None, right=None), slope=False).x.to(x.dtype)
    return Logits(x, scores, hidden, None, kept.weights[:, :, part].to(x.dtype))


def sink_columns(call: Call, x: Tensor) -> int | None:
    """How many columns of an explicit softmax are no keys but a sink behind them; None if they are not of this call."""
    more = x.shape[-1] - call.k.shape[-2]
    return more if more in (0, 1) else None


def near(call: Call, last: int | None) -> Call:
    """The call over the keys up to the last that any of its rows can see."""
    if last is None or last >= call.k.shape[-2]:
        return call
    last = max(last, 1)  # rows before the first key see none, but a row has to have one
    mask = call.mask
    if mask is not None and mask.ndim and mask.shape[-1] != 1:
        mask = mask[..., :last]
    v = None if call.v is None else call.v[..., :last, :]
    return dataclasses.replace(call, k=call.k[..., :last, :], v=v, mask=mask)


class Sums(NamedTuple):
    """What is summed over a softmax row, e = exp(d), d = x − top; (B, heads, rows)."""

    top: Tensor
    z: Tensor  # Σ e
    product: Tensor  # Σ e·d
    squares: Tensor  # Σ e²
    below: Tensor  # Σ d
    squared_below: Tensor  # Σ d²


def of_sums(sums: Sums, count: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What needs no loss; and the lse."""
    n, tiny = count.clamp_min(1.0), torch.finfo(count.dtype).tiny
    z = sums.z.clamp_min(tiny)
    log_z = torch.log(z)
    entropy = log_z - sums.product / z
    lse = sums.top.masked_fill(sums.top == -math.inf, 0.0) + log_z
    spread = sums.squared_below / n - (sums.below / n) ** 2
    return _named(count, entropy, 1.0 - sums.squares / z**2, 1.0 / z, spread, lse), lse


def still(found: Logits, count: Tensor, alpha: float) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """What needs no loss; the weights over the keys; and the lse. Writes into the logits."""
    x = found.x
    sparse = dense_attention.weights(x, x != -math.inf, None, alpha) if alpha != 1.0 else None
    top = x.amax(dim=-1, keepdim=True)
    below = x.sub_(top.masked_fill(top == -math.inf, 0.0))
    e = torch.exp(below)
    if found.hidden is not None:
        below.masked_fill_(found.hidden, 0.0)
    squared = torch.linalg.vector_norm(below, dim=-1) ** 2
    squares = torch.linalg.vector_norm(e, dim=-1) ** 2
    z, total = e.sum(dim=-1), below.sum(dim=-1)
    # exp underflows where the distance is large, and 0·finite is 0.
    sums = Sums(top.squeeze(-1), z, below.mul_(e).sum(dim=-1), squares, total, squared)
    values, lse = of_sums(sums, count)
    if sparse is None:
        weights = e.div_(z.clamp_min(torch.finfo(x.dtype).tiny).unsqueeze(-1))
        return values, weights if found.weights is None else found.weights, lse
    s = sensitivity(sparse, alpha)
    total = s.sum(dim=-1)
    entropy = -torch.special.xlogy(sparse, sparse).sum(dim=-1)
    trace = total - (s * s).sum(dim=-1) / total.clamp_min(torch.finfo(x.dtype).tiny)
    lse = torch.full_like(lse, math.nan)
    return _named(count, entropy, trace, sparse.amax(dim=-1), values["logit_spread"] ** 2, lse), sparse, lse


def _named(
    count: Tensor, entropy: Tensor, trace: Tensor, peak: Tensor, spread: Tensor, lse: Tensor
) -> dict[str, Tensor]:  # fmt: skip
    n = count.clamp_min(1.0)
    return {
        "sharpness": torch.where(count > 1, 1.0 - entropy / torch.log(n), torch.zeros_like(entropy)),
        "jacobian_trace": trace.clamp_min(0.0),
        "peak": peak,
        "logit_spread": spread.clamp_min(0.0).sqrt(),
        "lse_min": lse,
    }


def norms(call: Call, found: Logits, count: Tensor, k_norm: Tensor) -> dict[str, Tensor]:
    """The lengths of q, how q and k are aligned, and the largest score."""
    scores = found.scores
    if scores is None and found.weights is None:
        scores = found.x
    if scores is None:
        return {"q_norm": q_norms(call, count)}
    hidden, other = found.hidden, scores is not found.x and found.hidden is not None
    keys = scores.shape[-1]
    if keys < found.x.shape[-1]:  # behind the keys stands a sink, that everybody sees
        hidden, count = None if hidden is None else hidden[..., :keys], count - 1.0
    shown = scores.masked_fill(hidden, -math.inf) if other and hidden is not None else scores
    aligned = scores / k_norm.unsqueeze(-2).clamp_min(torch.finfo(scores.dtype).tiny)
    if hidden is not None:
        aligned.masked_fill_(hidden, 0.0)
    return alignment(call, count, shown.amax(dim=-1), torch.linalg.vector_norm(aligned, ord=1, dim=-1))


def q_norms(call: Call, count: Tensor) -> Tensor:
    """|q| of each row."""
    return torch.linalg.vector_norm(call.q, dim=-1, dtype=count.dtype).expand(count.shape)


def alignment(call: Call, count: Tensor, top: Tensor, total: Tensor) -> dict[str, Tensor]:
    """The same from the largest score and Σ |score|/|k|."""
    q_norm, scale = q_norms(call, count), number(call.scale, count.dtype, call.q.device)
    lengths = q_norm * scale.abs().reshape(-1, 1) if scale.ndim else q_norm * scale.abs()
    cosine = total / lengths.clamp_min(torch.finfo(count.dtype).tiny) / count.clamp_min(1)
    return {"q_norm": q_norm, "max_logit": top, "cosine": cosine}


def inner(x: Tensor) -> torch.dtype:
    """What readings of x are computed in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def number(x: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A number, or one per head, as a tensor."""
    return x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype, device=device)
