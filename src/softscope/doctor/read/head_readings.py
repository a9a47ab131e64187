"""The readings of heads: aggregates over the rows of one step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softscope.doctor.read.snapshot import QUANTILES
from softscope.doctor.read.tiles import RowReadings

# Readings that also get their median and 5% and 95% quantiles. For the others, a mean or an extreme is enough.
SPREAD = (
    "sharpness", "jacobian_trace", "peak", "logit_spread", "q_norm", "cosine",
    "demand", "supply", "transmission", "advantage", "regret_ratio",
)  # fmt: skip
# A single sequence is split into this many runs of rows, and each run counts as a sequence.
RUNS = 8
# A row's demand below this share of the largest demand its head ever had is rounding error: the loss is satisfied. A
# solved task at loss 3e-7 in float32 shows an advantage of 0.7 there, which means nothing.
ROUNDING = 1e-5
# If a sequence has fewer blocked rows than this, one column holding most of their weight means nothing.
ENOUGH = 8


def of_heads(parts: list[RowReadings], strongest: Tensor | None = None) -> dict[str, Tensor]:
    """Each reading per head, (heads,), over the rows of all forward passes of a step.

    Averages cover rows of tokens that see at least 32 keys, or half as many as the richest row of their sequence. Rows
    with one key are left out. Transmission, advantage, regret ratio and blocked also leave out the rows the loss does
    not care about: those with demand 0, or below 1e-5 of `strongest` (heads,), the largest mean demand the head has
    had.
    """
    included = _rows(parts, "included")
    cares = included
    if all("demand" in part.values for part in parts):
        demand = _rows(parts, "demand")
        most = _mean(demand, included & ~demand.isnan())
        most = most if strongest is None else torch.fmax(most, strongest)
        cares = included & (demand > ROUNDING * most.unsqueeze(-1))
    found: dict[str, Tensor] = {}
    names = [name for name in parts[0].values if all(name in part.values for part in parts)]
    for name in names:
        values = _rows(parts, name)
        if name == "max_logit":
            found[name] = _nothing_is_nan(values.masked_fill(~_rows(parts, "valid"), -math.inf).amax(dim=-1))
        elif name == "lse_min":
            found[name] = _nothing_is_nan(values.masked_fill(~_rows(parts, "valid"), math.inf).amin(dim=-1))
        elif name not in ("advantage", "blocked"):
            found |= _summary(name, values, cares if name in ("transmission", "regret_ratio") else included)
    for name in ("k_norm", "v_norm", "reached"):
        norms = [x for part in parts if (x := getattr(part, name)) is not None]
        if len(norms) == len(parts):
            found[name] = torch.cat(norms).nanmean(dim=0)
    for name in parts[0].of_sequences:
        kept = [part.of_sequences[name] for part in parts if name in part.of_sequences]
        found[name] = torch.cat(kept).nanmean(dim=0)
    found |= _sink(parts)
    if "blocked" in names:
        found |= _moving(parts, cares)
    return found


def _rows(parts: list[RowReadings], name: str) -> Tensor:
    """One value per row over all passes, (heads, all rows)."""
    found = []
    for part in parts:
        value = getattr(part, name) if name in ("included", "valid") else part.values[name]
        found.append(value.transpose(0, 1).flatten(1))
    return torch.cat(found, dim=1)


def _nothing_is_nan(x: Tensor) -> Tensor:
    return x.masked_fill(x.isinf(), math.nan)


def _mean(values: Tensor, of: Tensor) -> Tensor:
    """Mean over the rows where `of` is True; NaN if there are none."""
    return values.masked_fill(~of, 0.0).sum(dim=-1) / of.sum(dim=-1)


def _summary(name: str, values: Tensor, included: Tensor) -> dict[str, Tensor]:
    of = included & ~values.isnan()
    found = {name: _mean(values, of)}
    if name in SPREAD:
        found |= {f"{name}:{level}": value for level, value in quantiles(values, of).items()}
    return found


def quantiles(values: Tensor, of: Tensor) -> dict[str, Tensor]:
    """Quantiles with linear interpolation, as in `numpy.quantile`; torch's own is limited to 16 million entries."""
    ordered = values.masked_fill(~of, math.inf).sort(dim=-1).values
    last = of.sum(dim=-1) - 1
    found = {}
    for name, level in QUANTILES.items():
        at = (last * level).clamp_min(0.0)
        low = at.floor()
        index = torch.stack([low, torch.minimum(low + 1.0, last.clamp_min(0))], dim=-1).long()
        near = ordered.gather(-1, index)
        value = torch.lerp(near[..., 0], near[..., 1], (at - low).to(near.dtype))
        found[name] = value.masked_fill(last < 0, math.nan)
    return found


def _sink(parts: list[RowReadings]) -> dict[str, Tensor]:
    """The key position with the most weight over all sequences, and its share; a learned sink is position −1."""
    total = _over_sequences(parts, [part.columns for part in parts])
    share, column = total.max(dim=-1)
    learned = _width(parts) < total.shape[-1]
    column = column.to(total.dtype)
    if learned:
        column = torch.where(column == total.shape[-1] - 1, torch.full_like(column, -1.0), column)
    mass = share / total.sum(dim=-1)
    return {"sink_column": column.masked_fill(mass.isnan(), math.nan), "sink_mass": mass}


def _width(parts: list[RowReadings]) -> int:
    return max(part.keys for part in parts)


def _over_sequences(parts: list[RowReadings], columns: list[Tensor]) -> Tensor:
    """Sum over sequences and passes, which may differ in their number of keys: (heads, most keys).

    With a learned sink, its column comes last, after the most keys.
    """
    widest, sinks = _width(parts), max(x.shape[-1] - part.keys for part, x in zip(parts, columns, strict=True))
    total = columns[0].new_zeros(columns[0].shape[1], widest + sinks)
    for part, x in zip(parts, columns, strict=True):
        together = x.sum(dim=0)
        total[:, : part.keys] += together[:, : part.keys]
        total[:, widest : widest + x.shape[-1] - part.keys] += together[:, part.keys :]
    return total


def _moving(parts: list[RowReadings], cares: Tensor) -> dict[str, Tensor]:
    advantage, blocked = _rows(parts, "advantage"), _rows(parts, "blocked") > 0.0
    judged = cares & ~advantage.isnan()
    blocked &= judged
    found = {"blocked": blocked.sum(dim=-1) / judged.sum(dim=-1), "judged": judged.sum(dim=-1).to(advantage.dtype)}
    speaking = torch.where(blocked.any(dim=-1, keepdim=True), blocked, judged)
    found["advantage"] = _mean(advantage, speaking)
    found |= {f"advantage:{level}": value for level, value in quantiles(advantage, speaking).items()}
    found["advantage_error"] = _error(advantage, speaking, found["advantage"], _sequences(parts))
    found["blocked_mass"] = _blocked_mass(parts)
    if all(part.blocked_offsets is not None for part in parts):
        found["blocked_offset_mass"] = _blocked_offset_mass(parts)
    return found


def _sequences(parts: list[RowReadings]) -> Tensor:
    """The sequence each row belongs to, (all rows,); a single sequence is split into runs of neighbouring rows."""
    shapes = [part.included.shape for part in parts]
    device = parts[0].included.device
    if sum(shape[0] for shape in shapes) == 1:
        rows = shapes[0][2]
        return torch.arange(rows, device=device) * min(RUNS, rows) // rows
    first, found = 0, []
    for batch, _, rows in shapes:
        found.append(torch.arange(first, first + batch, device=device).repeat_interleave(rows))
        first += batch
    return torch.cat(found)


def _error(values: Tensor, of: Tensor, mean: Tensor, sequences: Tensor) -> Tensor:
    """Standard error of a mean over rows that are alike within a sequence; NaN if only one sequence has rows.

    √(s/(s−1) · Σ over sequences of (Σ over its rows of value − mean)²) / rows.
    """
    many = sequences.shape[0]  # an upper bound: only the device knows the exact number
    away = (values - mean.unsqueeze(-1)).masked_fill(~of, 0.0)
    sums = values.new_zeros(values.shape[0], many).index_add_(1, sequences, away)
    rows = values.new_zeros(values.shape[0], many).index_add_(1, sequences, of.to(values.dtype))
    s = (rows > 0).sum(dim=-1).to(values.dtype)
    error = torch.sqrt(s / (s - 1.0) * (sums**2).sum(dim=-1)) / rows.sum(dim=-1)
    return error.masked_fill(s < 2, math.nan)


def _blocked_mass(parts: list[RowReadings]) -> Tensor:
    """The largest share of the blocked rows' weight on one key position, or on one key per sequence.

    A sink is not always at the same position: in a padded batch, the last token of a sequence is not. Sequences with
    fewer than 8 blocked rows count only towards the first share, since the top key of a single row holds all of its
    weight.
    """
    columns = [part.blocked_columns for part in parts if part.blocked_columns is not None]
    pooled = _over_sequences(parts, columns)
    found = pooled.amax(dim=-1) / pooled.sum(dim=-1)
    top, total = torch.zeros_like(found), torch.zeros_like(found)
    for part in parts:
        assert part.blocked_columns is not None
        assert part.blocked_rows is not None
        counts = (part.blocked_rows >= ENOUGH).to(found.dtype)
        top = top + (part.blocked_columns.amax(dim=-1) * counts).sum(dim=0)
        total = total + (part.blocked_columns.sum(dim=-1) * counts).sum(dim=0)
    own = (top / total).nan_to_num(nan=-1.0)
    return torch.where(found.isnan(), found, torch.maximum(found, own))


def _blocked_offset_mass(parts: list[RowReadings]) -> Tensor:
    """The largest share of the blocked rows' weight at one offset, key − query; a sink has no offset."""
    offsets = [part.blocked_offsets for part in parts if part.blocked_offsets is not None]
    widest = max(x.shape[-1] for x in offsets)
    sides = [(widest - x.shape[-1]) // 2 for x in offsets]
    pooled = torch.stack([torch.nn.functional.pad(x, (side, side)) for x, side in zip(offsets, sides, strict=True)])
    columns = _over_sequences(parts, [part.blocked_columns for part in parts if part.blocked_columns is not None])
    return pooled.sum(dim=0).amax(dim=-1) / columns.sum(dim=-1)
