"""The readings of heads: aggregates over the rows of one step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softscope.doctor.read.head_rows import HeadRows, head_rows
from softscope.doctor.read.head_sums import OF_JUDGED, OF_ROWS, OF_SEQUENCES, Sums, sums_of
from softscope.doctor.read.snapshot import QUANTILES
from softscope.doctor.read.tiles import RowReadings

# Readings that also get their median and 5% and 95% quantiles. For the others, a mean or an extreme is enough.
SPREAD = (
    "sharpness", "jacobian_trace", "peak", "logit_spread", "q_norm", "cosine",
    "demand", "supply", "transmission", "advantage", "regret_ratio",
)  # fmt: skip


def of_heads(parts: list[RowReadings], strongest: Tensor | None = None) -> dict[str, Tensor]:
    """Each reading per head, (heads,), over the rows of all forward passes of a step.

    Averages cover rows of tokens that see at least 32 keys, or half as many as the richest row of their sequence. Rows
    with one key are left out. Transmission, advantage, regret ratio and blocked also leave out the rows the loss does
    not care about: those with demand 0, or below 1e-5 of `strongest` (heads,), the largest mean demand the head has
    had.
    """
    rows = head_rows(parts, strongest)
    return readings_of(sums_of(rows)) | _quantiles_of(rows)


def readings_of(sums: Sums) -> dict[str, Tensor]:
    """The readings of heads that follow from what their rows add up to."""
    found: dict[str, Tensor] = {}
    for name in (*OF_ROWS, *OF_SEQUENCES):
        if f"{name}:n" in sums:
            found[name] = sums[f"{name}:sum"] / sums[f"{name}:n"]
    for name in ("max_logit", "lse_min"):
        if name in sums:
            found[name] = sums[name].masked_fill(sums[name].isinf(), math.nan)
    found["sink_mass"] = sums["columns:weight"][:, 0] / sums["columns:total"]
    found["sink_column"] = sums["columns:at"][:, 0].masked_fill(found["sink_mass"].isnan(), math.nan)
    if "judged:rows" in sums:
        found |= _moving(sums)
    return found


def _moving(sums: Sums) -> dict[str, Tensor]:
    judged, blocked = sums["judged:rows"], sums["blocked:rows"]
    # Over the blocked rows, if there are any.
    over = {
        what: torch.where(blocked > 0, sums[f"blocked:{what}"], sums[f"judged:{what}"])
        for what in ("rows", "sum", "sequences", "squares")
    }
    many = over["sequences"]
    error = torch.sqrt(many / (many - 1.0) * over["squares"]) / over["rows"]
    total = sums["blocked_columns:total"]
    pooled = sums["blocked_columns:weight"][:, 0] / total
    own = (sums["blocked_own:top"] / sums["blocked_own:total"]).nan_to_num(nan=-1.0)
    found = {
        "blocked": blocked / judged,
        "judged": judged,
        "advantage": over["sum"] / over["rows"],
        "advantage_error": error.masked_fill(many < 2, math.nan),
        "blocked_mass": torch.where(pooled.isnan(), pooled, torch.maximum(pooled, own)),
    }
    if "blocked_offsets:weight" in sums:
        found["blocked_offset_mass"] = sums["blocked_offsets:weight"][:, 0] / total
    if "blocked_tokens:weight" in sums:
        found["blocked_token_mass"] = sums["blocked_tokens:weight"][:, 0] / sums["blocked_tokens:total"]
    return found


def _quantiles_of(rows: HeadRows) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name in SPREAD:
        if name not in rows.values:
            continue
        values = rows.values[name]
        of = (rows.cares if name in OF_JUDGED else rows.included) & ~values.isnan()
        if name == "advantage":
            if rows.judged is None or rows.blocked is None:
                continue
            of = torch.where(rows.blocked.any(dim=-1, keepdim=True), rows.blocked, rows.judged)
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
