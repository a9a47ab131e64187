"""The readings of single query rows: what DESIGN says of one softmax, for the rows that were chosen."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from softscope._attention_call import Call
from softscope._torch import written_out
from softscope._torch.jacobian import sensitivity
from softscope.doctor.sampling import FEWEST
from softscope.doctor.seen import HIDDEN, Seen


@dataclasses.dataclass
class Chosen:
    """The rows of one call that are to be read, and all that is needed to read them later.

    Keys and values are the model's own tensors. What is held besides, until the backward pass or the end of the step,
    is small: the chosen rows of q, or where weights were written down the chosen rows of these and of their logits.
    """

    seen: Seen
    rows: Tensor  # (R,)
    call: Call | None  # of the chosen rows, if q and k are known
    logits: Tensor | None  # else the chosen rows of what the softmax got
    weights: Tensor | None  # and gave
    known_keys: Tensor | None  # (B or 1, m): keys that anybody sees
    versions: tuple[int, ...]

    def untouched(self) -> bool:
        """Whether q, k, v still hold what they held: somebody may have written into them."""
        return self.versions == _versions(self.call)


@dataclasses.dataclass
class RowReadings:
    """One number per row, (B, heads, R), and what belongs to columns."""

    values: dict[str, Tensor]
    valid: Tensor  # rows of tokens that see a key
    included: Tensor  # those of them that see enough keys for an average
    columns: Tensor  # (B, heads, m): weight per key summed over the included rows; a sink's is one more
    keys: int  # m; more columns than that: the sink's
    k_norm: Tensor | None  # (B, heads)
    blocked_columns: Tensor | None = None  # (B, heads, m): the same over blocked rows
    blocked_rows: Tensor | None = None  # (B, heads): how many


def choose(seen: Seen, rows: Tensor, known_keys: Tensor | None) -> Chosen:
    """Keep what reading these rows takes."""
    if not seen.queries_and_keys():
        assert seen.logits is not None
        assert seen.weights is not None
        logits, weights = (x.index_select(2, rows) for x in (seen.logits, seen.weights))
        call = _call(seen, rows) if seen.q is not None else None
        seen = dataclasses.replace(seen, logits=None, weights=None, result=rows)  # frees the whole matrices
        return Chosen(seen, rows, call, logits, weights, known_keys, _versions(call))
    call = _call(seen, rows)
    seen = dataclasses.replace(seen, q=None, k=None, v=None, mask=None, result=rows)
    return Chosen(seen, rows, call, None, None, known_keys, _versions(call))


def _call(seen: Seen, rows: Tensor) -> Call:
    assert seen.q is not None
    mask = seen.mask
    if mask is not None and mask.ndim >= 2 and mask.shape[-2] != 1:
        mask = mask.index_select(-2, rows)
    return Call(
        q=seen.q.index_select(2, rows), k=seen.k, v=seen.v, scale=seen.scale, positions=rows + seen.start,
        left=seen.left, right=seen.right, mask=mask, softcap=seen.softcap, sink=seen.sink, alpha=seen.alpha,
        single=False, rows=rows,
    )  # fmt: skip


def _versions(call: Call | None) -> tuple[int, ...]:
    if call is None:
        return ()
    return tuple(x._version for x in (call.k, call.v) if x is not None and not x.is_inference())


def read(chosen: Chosen, grad: Tensor | None) -> RowReadings:
    """All readings of the chosen rows; with the gradient of the call's result, whole, also the moving ones."""
    call = None if chosen.call is None else chosen.call.spread()
    scores: Tensor | None = None
    slope: Tensor | None = None
    sink: Tensor | None = None
    if chosen.logits is None or chosen.weights is None:
        assert call is not None
        dtype = torch.float64 if call.q.dtype == torch.float64 else torch.float32
        scores, x, visible = written_out.logits(call, None, dtype)
        if call.softcap is not None and grad is not None:
            slope = torch.cosh(scores / call.softcap) ** -2.0
        weights = None
    else:
        dtype = torch.float64 if chosen.logits.dtype == torch.float64 else torch.float32
        x, weights = chosen.logits.to(dtype), chosen.weights.to(dtype)
        visible = x > max(HIDDEN, torch.finfo(chosen.logits.dtype).min / 2)
        if call is not None and call.k.shape[-2] == x.shape[-1]:
            scores = (call.q.to(dtype) @ call.k.to(dtype).transpose(-1, -2)) * call.scale
    count = visible.sum(dim=-1)
    values, weights, lse = _still(x, visible, count, weights, chosen.seen.alpha)
    if call is not None and call.sink is not None:
        share = torch.sigmoid(_number(call.sink, dtype, x.device) - lse)
        weights, sink = weights * (1.0 - share).unsqueeze(-1), share
    valid, included = _which(chosen, count)
    k_norm = None
    if call is not None:
        more, k_norm = _norms(call, scores, visible, count, chosen.known_keys, dtype)
        values |= more
    shares = weights if sink is None else torch.cat([weights, sink.unsqueeze(-1)], dim=-1)
    readings = RowReadings(values, valid, included, _columns(shares, included), x.shape[-1], k_norm)
    if grad is not None:
        _move(readings, chosen, call, shares, visible, slope, grad, dtype)
    return readings


def _still(
    x: Tensor, visible: Tensor, count: Tensor, weights: Tensor | None, alpha: float
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """What needs no loss; the weights over the keys; and the lse."""
    highest = x.masked_fill(~visible, -math.inf).amax(dim=-1, keepdim=True)
    highest = highest.masked_fill(highest == -math.inf, 0.0)
    below = (x - highest).masked_fill_(~visible, 0.0)
    n = count.to(x.dtype).clamp_min(1.0)
    spread = torch.linalg.vector_norm(below, dim=-1) ** 2 / n - (below.sum(dim=-1) / n) ** 2
    e = torch.exp(below).masked_fill_(~visible, 0.0)
    z = e.sum(dim=-1).clamp_min(torch.finfo(x.dtype).tiny)
    lse = highest.squeeze(-1) + torch.log(z)
    if alpha == 1.0:
        # exp underflows where the distance is large, and 0·finite is 0.
        entropy = torch.log(z) - (e * below).sum(dim=-1) / z
        trace = 1.0 - (torch.linalg.vector_norm(e, dim=-1) / z) ** 2
        peak = 1.0 / z
        if weights is None:
            weights = e.div_(z.unsqueeze(-1))
    else:
        weights = written_out.weights(x, visible, None, alpha)
        s = sensitivity(weights, alpha)
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
        "count": count.to(x.dtype),
    }
    return values, weights, lse


def _which(chosen: Chosen, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if chosen.known_keys is not None and chosen.seen.n == chosen.seen.m:
        valid = valid & chosen.known_keys[:, chosen.rows][:, None]
    richest = count.masked_fill(~valid, 0).amax(dim=(-2, -1), keepdim=True)
    return valid, valid & (count > 1) & (2 * count >= torch.clamp(richest, max=2 * FEWEST))


def _norms(
    call: Call, scores: Tensor | None, visible: Tensor, count: Tensor, known_keys: Tensor | None, dtype: torch.dtype
) -> tuple[dict[str, Tensor], Tensor]:
    """The lengths of q and k, and how they are aligned."""
    q_norm, k_norm = (torch.linalg.vector_norm(x, dim=-1, dtype=dtype) for x in (call.q, call.k))
    values = {"q_norm": q_norm.expand(count.shape)}
    if scores is not None:
        values["max_logit"] = scores.masked_fill(~visible, -math.inf).amax(dim=-1)
        scale = _number(call.scale, dtype, call.q.device)
        tiny = torch.finfo(dtype).tiny
        aligned = (scores / k_norm.unsqueeze(-2).clamp_min(tiny)).masked_fill_(~visible, 0.0)
        total = torch.linalg.vector_norm(aligned, ord=1, dim=-1)
        lengths = (q_norm * scale.abs().reshape(-1, 1) if scale.ndim else q_norm * scale.abs()).clamp_min(tiny)
        values["cosine"] = total / lengths / count.clamp_min(1)
    k_norm = k_norm.expand(*count.shape[:2], k_norm.shape[-1])
    if known_keys is None or known_keys.shape[-1] != k_norm.shape[-1]:
        return values, k_norm.mean(dim=-1)
    known = known_keys[:, None].to(dtype)
    return values, (k_norm * known).sum(dim=-1) / known.sum(dim=-1)


def _number(x: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    return x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype, device=device)


def _columns(shares: Tensor, rows: Tensor) -> Tensor:
    """Σ over these rows of the weight of each key: (B, heads, keys)."""
    return (rows.to(shares.dtype).unsqueeze(-2) @ shares).squeeze(-2)


def _move(
    readings: RowReadings, chosen: Chosen, call: Call | None, shares: Tensor, visible: Tensor, slope: Tensor | None,
    grad: Tensor, dtype: torch.dtype,
) -> None:  # fmt: skip
    """Add what needs a loss: dP from the output's gradient and v, or as it was seen."""
    grad = chosen.seen.gradient(grad).index_select(2, chosen.rows).to(dtype)
    if chosen.weights is not None:
        dP = grad
    else:
        assert call is not None
        assert call.v is not None
        dP = (grad @ call.v.to(dtype).transpose(-1, -2)).expand(visible.shape)
    if shares.shape[-1] > visible.shape[-1]:  # a sink is one more key with gradient 0
        visible = torch.nn.functional.pad(visible, (0, 1), value=True)
        dP = torch.nn.functional.pad(dP, (0, 1))
        slope = None if slope is None else torch.nn.functional.pad(slope, (0, 1), value=1.0)
    found = written_out.from_weights(shares, dP, slope, visible, chosen.seen.alpha)
    readings.values |= {name: value for name, value in found._asdict().items() if name != "blocked"}
    blocked = found.blocked & readings.included
    readings.values["blocked"] = blocked.to(dtype)
    readings.blocked_columns, readings.blocked_rows = _columns(shares, blocked), blocked.sum(dim=-1)
