"""The readings of single query rows: what DESIGN says of one softmax, for the rows that were chosen."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softscope._attention_call import Call
from softscope._torch import written_out
from softscope._torch.jacobian import sensitivity
from softscope.doctor.sampling import FEWEST
from softscope.doctor.seen import HIDDEN, Seen

TILE = 1 << 18  # logits at a time on a CPU: 1 MB of float32, and a few such


@dataclasses.dataclass(eq=False)
class Chosen:
    """The rows of one call that are to be read, and all that is needed to read them later.

    Keys and values are the model's own tensors. What is held besides, until the backward pass or the end of the step,
    is small: the chosen rows of q, or where weights were written down the chosen rows of these and of their logits.
    """

    seen: Seen
    rows: Tensor  # (R,)
    numbers: Sequence[int]  # the same, on this side of the device
    call: Call | None  # of the chosen rows, if q and k are known
    logits: Tensor | None  # else the chosen rows of what the softmax got
    weights: Tensor | None  # and gave
    known_keys: Tensor | None  # (B or 1, m): keys that anybody sees
    versions: tuple[int, ...]

    def last_key(self, part: slice) -> int | None:
        """One past the last key that these rows can see, or None where that is not known."""
        right, start = self.seen.right, self.seen.start
        return None if right is None or not isinstance(start, int) else self.numbers[part][-1] + start + right + 1

    def untouched(self) -> bool:
        """Whether q, k, v still hold what they held: somebody may have written into them."""
        return self.versions == _versions(self.call)


@dataclasses.dataclass(eq=False)
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


def choose(seen: Seen, numbers: Sequence[int], rows: Tensor, known_keys: Tensor | None) -> Chosen:
    """Keep what reading these rows takes."""
    if not seen.queries_and_keys():
        assert seen.logits is not None
        assert seen.weights is not None
        logits, weights = (x.index_select(2, rows) for x in (seen.logits, seen.weights))
        call = _call(seen, rows) if seen.q is not None else None
        seen = dataclasses.replace(seen, logits=None, weights=None, result=rows)  # frees the whole matrices
        return Chosen(seen, rows, numbers, call, logits, weights, known_keys, _versions(call))
    call = _call(seen, rows)
    seen = dataclasses.replace(seen, q=None, k=None, v=None, mask=None, result=rows)
    return Chosen(seen, rows, numbers, call, None, None, known_keys, _versions(call))


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
    """All readings of the chosen rows; with the gradient of the call's result, whole, also the moving ones.

    A few rows at a time, in memory that stays in a cache, and only the keys that a causal row can see.
    """
    call = None if chosen.call is None else _ready(chosen.call)
    if grad is not None:
        grad = chosen.seen.gradient(grad).index_select(2, chosen.rows)
    count = _counts(chosen, call)
    valid, included = _which(chosen, count)
    k_norm = None if call is None else torch.linalg.vector_norm(call.k, dim=-1, dtype=_inner(call.k))
    parts = [
        _part(chosen, call, part, grad, count[:, :, part], included[:, :, part], k_norm) for part in _tiles(chosen)
    ]
    return _joined(parts, count, valid, included, None if k_norm is None else _over_keys(k_norm, chosen))


def _ready(call: Call) -> Call:
    """A key head for each query head, in the dtype and the layout that every tile needs, made once."""
    call = call.spread()
    dtype = _inner(call.q)
    k, v = (None if x is None else x.to(dtype).contiguous() for x in (call.k, call.v))
    return dataclasses.replace(call, k=k, v=v)


def _over_keys(k_norm: Tensor, chosen: Chosen) -> Tensor:
    """The mean over keys that anybody sees, (B, heads)."""
    if chosen.known_keys is None or chosen.known_keys.shape[-1] != k_norm.shape[-1]:
        return k_norm.mean(dim=-1)
    known = chosen.known_keys[:, None].to(k_norm.dtype)
    return (k_norm * known).sum(dim=-1) / known.sum(dim=-1)


def _counts(chosen: Chosen, call: Call | None) -> Tensor:
    """How many keys each row sees, (B, heads, R)."""
    if chosen.logits is not None:
        return (~_hidden(chosen.logits)).sum(dim=-1).to(_inner(chosen.logits))
    assert call is not None
    shape, m = (*call.batch, chosen.seen.heads, len(chosen.numbers)), chosen.seen.m
    shown = call.visible_and_bias()[0]
    if shown is None:
        return torch.full(shape, float(m), dtype=_inner(call.q), device=call.q.device)
    return shown.expand(*shown.shape[:-1], m).sum(dim=-1).to(_inner(call.q)).expand(shape)


def _hidden(logits: Tensor) -> Tensor:
    return logits <= max(HIDDEN, torch.finfo(logits.dtype).min / 2)


def _tiles(chosen: Chosen) -> list[slice]:
    like = chosen.call.q if chosen.weights is None and chosen.call is not None else chosen.weights
    assert like is not None
    many = (TILE if like.device.type == "cpu" else 64 * TILE) // (like.shape[0] * chosen.seen.heads * chosen.seen.m)
    rows = max(8, many)
    return [slice(first, first + rows) for first in range(0, len(chosen.rows), rows)]


def _joined(
    parts: list[_Part], count: Tensor, valid: Tensor, included: Tensor, k_norm: Tensor | None
) -> RowReadings:  # fmt: skip
    """The parts' rows behind one another, and their columns added."""
    values = {name: torch.cat([part.values[name] for part in parts], dim=-1) for name in parts[0].values}
    columns, keys = torch.stack([part.columns for part in parts]).sum(dim=0), parts[0].keys
    found = RowReadings(values | {"count": count}, valid, included, columns, keys, k_norm)
    blocked = [part.blocked_columns for part in parts if part.blocked_columns is not None]
    if blocked:
        found.blocked_columns = torch.stack(blocked).sum(dim=0)
        found.blocked_rows = (values["blocked"] > 0.0).sum(dim=-1)
    return found


class _Part(NamedTuple):
    """What a tile of rows says."""

    values: dict[str, Tensor]
    columns: Tensor
    keys: int
    blocked_columns: Tensor | None


@dataclasses.dataclass
class _Logits:
    """The logits of some rows over the keys they may see, (B, heads, rows, keys)."""

    x: Tensor  # −inf where hidden; may be written into
    scores: Tensor | None  # before cap and mask, where they are others
    hidden: Tensor | None  # broadcasts to x, None for nothing hidden
    slope: Tensor | None = None
    weights: Tensor | None = None


def _logits_of(call: Call, slope: bool) -> _Logits:
    """From q and k."""
    dtype = _inner(call.q)
    scores = (call.q.to(dtype) * _number(call.scale, dtype, call.q.device)) @ call.k.to(dtype).transpose(-1, -2)
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
    return _Logits(x, other, hidden, curve)


def _logits_given(chosen: Chosen, call: Call | None, part: slice) -> _Logits:
    """As an explicit softmax got them; with the scores of q and k where these are known."""
    assert chosen.logits is not None
    assert chosen.weights is not None
    given, scores = chosen.logits[:, :, part], None
    hidden = _hidden(given)
    x = given.to(_inner(given)).masked_fill(hidden, -math.inf)
    if call is not None and call.k.shape[-2] == x.shape[-1]:
        scores = _logits_of(dataclasses.replace(call, mask=None, left=None, right=None), slope=False).x.to(x.dtype)
    return _Logits(x, scores, hidden, None, chosen.weights[:, :, part].to(x.dtype))


def _inner(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _part(
    chosen: Chosen, call: Call | None, part: slice, grad: Tensor | None, count: Tensor, included: Tensor,
    k_norm: Tensor | None,
) -> _Part:  # fmt: skip
    """The readings of some of the chosen rows."""
    m = chosen.seen.m
    call = None if call is None else call.some(part)
    if chosen.weights is None:
        assert call is not None
        call = _near(call, chosen.last_key(part))
        found = _logits_of(call, slope=grad is not None)
    else:
        found = _logits_given(chosen, call, part)
    dtype = found.x.dtype
    values: dict[str, Tensor] = {}
    if call is not None and k_norm is not None:
        values |= _norms(call, found, count, k_norm[..., : call.k.shape[-2]])
    more, weights, lse = _still(found, count, chosen.seen.alpha)
    values |= more
    sinks, columns = 0, None
    shares, hidden, slope = weights, found.hidden, found.slope
    if call is not None and call.sink is not None:
        sinks = 1
        share = torch.sigmoid(_number(call.sink, dtype, lse.device) - lse)
        shares = torch.cat([weights * (1.0 - share).unsqueeze(-1), share.unsqueeze(-1)], dim=-1)
        # A sink is one more key, that everybody sees, with gradient 0.
        hidden = (
            None if hidden is None else functional.pad(hidden.expand(*hidden.shape[:-1], weights.shape[-1]), (0, 1))
        )
        slope = None if slope is None else functional.pad(slope, (0, 1), value=1.0)
    if grad is not None:
        dP = grad[:, :, part].to(dtype)
        if chosen.weights is None:
            assert call is not None
            assert call.v is not None
            dP = dP @ call.v.to(dtype).transpose(-1, -2)
        dP = functional.pad(dP, (0, sinks)) if sinks else dP
        moving = written_out.from_weights(shares, dP, slope, hidden, count + sinks, chosen.seen.alpha)
        values |= {name: value for name, value in moving._asdict().items() if name != "blocked"}
        blocked = moving.blocked & included
        values["blocked"] = blocked.to(dtype)
        columns = _columns(shares, blocked, m, sinks)
    return _Part(values, _columns(shares, included, m, sinks), m, columns)


def _near(call: Call, last: int | None) -> Call:
    """The call over the keys up to the last that any of its rows can see."""
    if last is None or last >= call.k.shape[-2]:
        return call
    mask = call.mask
    if mask is not None and mask.ndim and mask.shape[-1] != 1:
        mask = mask[..., :last]
    v = None if call.v is None else call.v[..., :last, :]
    return dataclasses.replace(call, k=call.k[..., :last, :], v=v, mask=mask)


def _still(found: _Logits, count: Tensor, alpha: float) -> tuple[dict[str, Tensor], Tensor, Tensor]:
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


def _which(chosen: Chosen, count: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of tokens that see a key, and those that see enough; a query at a key that nobody sees is padding."""
    valid = count > 0
    if chosen.known_keys is not None and chosen.seen.n == chosen.seen.m:
        valid = valid & chosen.known_keys[:, chosen.rows][:, None]
    richest = count.masked_fill(~valid, 0.0).amax(dim=(-2, -1), keepdim=True)
    return valid, valid & (count > 1) & (2 * count >= richest.clamp(max=2 * FEWEST))


def _norms(call: Call, found: _Logits, count: Tensor, k_norm: Tensor) -> dict[str, Tensor]:
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
        scale = _number(call.scale, dtype, call.q.device)
        tiny = torch.finfo(dtype).tiny
        aligned = scores / k_norm.unsqueeze(-2).clamp_min(tiny)
        if hidden is not None:
            aligned.masked_fill_(hidden, 0.0)
        total = torch.linalg.vector_norm(aligned, ord=1, dim=-1)
        lengths = (q_norm * scale.abs().reshape(-1, 1) if scale.ndim else q_norm * scale.abs()).clamp_min(tiny)
        values["cosine"] = total / lengths / count.clamp_min(1)
    return values


def _number(x: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    return x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype, device=device)


def _columns(shares: Tensor, rows: Tensor, m: int, sinks: int) -> Tensor:
    """Σ over these rows of the weight of each of m keys, and behind them of the sink: (B, heads, m or m + 1)."""
    found = (rows.to(shares.dtype).unsqueeze(-2) @ shares).squeeze(-2)
    keys = found.shape[-1] - sinks
    if keys == m:
        return found
    return torch.cat([functional.pad(found[..., :keys], (0, m - keys)), found[..., keys:]], dim=-1)
