"""What a step's rows add up to, head by head: sums and counts that merge with those of other rows, wherever these are.

Every number is (heads,), a list of the largest columns (heads, TOP). `head_readings` makes readings of them.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from softscope.doctor.read.head_rows import HeadRows
from softscope.doctor.read.one_token import over_passes
from softscope.doctor.read.tiles import RowReadings

# Means over rows: of those that the loss cares about for the first two, else of the included ones.
OF_JUDGED: Final = ("transmission", "regret_ratio")
OF_ROWS: Final = (
    *OF_JUDGED, "sharpness", "jacobian_trace", "peak", "logit_spread", "q_norm", "cosine", "count", "demand", "supply",
    "sees_ahead", "ahead", "own", "padding", "twice", "dropped",
)  # fmt: skip
# Means over sequences.
OF_SEQUENCES: Final = (
    "k_norm", "v_norm", "reached", "blind", "q_alike", "k_alike", "same_keys", "alone",
)  # fmt: skip
# How many of the columns with the most weight are kept: one is read, and the others may be first elsewhere.
TOP: Final = 4
# If a sequence has fewer blocked rows than this, one column holding most of their weight means nothing.
ENOUGH: Final = 8

Sums = dict[str, Tensor]


def sums_of(rows: HeadRows) -> Sums:
    """Everything that the readings of heads need of these rows."""
    found: Sums = {}
    for name, values in rows.values.items():
        if name in OF_ROWS:
            of = (rows.cares if name in OF_JUDGED else rows.included) & ~values.isnan()
            found |= {f"{name}:sum": values.masked_fill(~of, 0.0).sum(dim=-1), f"{name}:n": _many(of)}
    if "max_logit" in rows.values:
        found["max_logit"] = rows.values["max_logit"].masked_fill(~rows.valid, -math.inf).amax(dim=-1)
    if "lse_min" in rows.values:
        found["lse_min"] = rows.values["lse_min"].masked_fill(~rows.valid, math.inf).amin(dim=-1)
    for name, kept in _of_sequences(rows.parts).items():
        found |= {f"{name}:sum": kept.nansum(dim=0), f"{name}:n": _many(~kept.isnan().transpose(0, 1))}
    found |= _largest("columns", _over_sequences(rows.parts, [part.columns for part in rows.parts]), _width(rows.parts))
    if rows.judged is not None and rows.blocked is not None:
        sequences = rows.sequences()
        found["sequences"] = torch.full_like(found["columns:total"], float(rows.many_sequences))
        for name, some in (("judged", rows.judged), ("blocked", rows.blocked)):
            found |= _spread(name, rows.values["advantage"], some, sequences)
        found |= _blocked_columns(rows.parts)
    return found


def _many(of: Tensor) -> Tensor:
    return of.sum(dim=-1).to(torch.float32)


def _of_sequences(parts: list[RowReadings]) -> Sums:
    """Readings of whole sequences, (all sequences, heads)."""
    found = {}
    for name in ("k_norm", "v_norm", "reached"):
        kept = [x for part in parts if (x := getattr(part, name)) is not None]
        if len(kept) == len(parts):
            found[name] = torch.cat(kept)
    for name in parts[0].of_sequences:
        found[name] = torch.cat([part.of_sequences[name] for part in parts if name in part.of_sequences])
    return found


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


def _largest(name: str, columns: Tensor, keys: int, first: int = 0) -> Sums:
    """The columns with the most weight, and the weight of all. The first is column `first`; a learned sink is −1."""
    weight, at = columns.topk(min(TOP, columns.shape[-1]), dim=-1)
    at = torch.where(at < keys, at + first, torch.full_like(at, -1)).to(columns.dtype)
    missing = TOP - weight.shape[-1]
    return {
        f"{name}:at": functional.pad(at, (0, missing)),
        f"{name}:weight": functional.pad(weight, (0, missing)),
        f"{name}:total": columns.sum(dim=-1),
    }


def _spread(name: str, values: Tensor, of: Tensor, sequences: Tensor) -> Sums:
    """What the mean over some rows and its standard error need: rows are alike within a sequence.

    With each sequence's sum of value − mean, the sums over sequences of its square, of its product with the number of
    rows, and of that number's square: from these, the error around another mean follows without cancellation.
    """
    rows = _many(of)
    total = values.masked_fill(~of, 0.0).sum(dim=-1)
    away = (values - (total / rows).unsqueeze(-1)).masked_fill(~of, 0.0)
    many = sequences.shape[0]  # an upper bound: only the device knows the exact number
    sums = values.new_zeros(values.shape[0], many).index_add_(1, sequences, away)
    counts = values.new_zeros(values.shape[0], many).index_add_(1, sequences, of.to(values.dtype))
    return {
        f"{name}:rows": rows,
        f"{name}:sum": total,
        f"{name}:sequences": _many(counts > 0),
        f"{name}:squares": (sums**2).sum(dim=-1),
        f"{name}:products": (sums * counts).sum(dim=-1),
        f"{name}:counts": (counts**2).sum(dim=-1),
    }


def _blocked_columns(parts: list[RowReadings]) -> Sums:
    """Where the blocked rows put their weight: on one key position, on one key of each sequence, at one offset.

    A sink is not always at the same position: in a padded batch, the last token of a sequence is not. Sequences with
    fewer than 8 blocked rows count only towards the first, since the top key of a single row holds all of its weight.
    """
    columns = [part.blocked_columns for part in parts if part.blocked_columns is not None]
    found = _largest("blocked_columns", _over_sequences(parts, columns), _width(parts))
    top = torch.zeros_like(found["blocked_columns:total"])
    total = torch.zeros_like(top)
    for part in parts:
        assert part.blocked_columns is not None
        assert part.blocked_rows is not None
        counts = (part.blocked_rows >= ENOUGH).to(top.dtype)
        top = top + (part.blocked_columns.amax(dim=-1) * counts).sum(dim=0)
        total = total + (part.blocked_columns.sum(dim=-1) * counts).sum(dim=0)
    found |= {"blocked_own:top": top, "blocked_own:total": total}
    offsets = [part.blocked_offsets for part in parts if part.blocked_offsets is not None]
    if len(offsets) == len(parts):
        widest = max(x.shape[-1] for x in offsets)
        sides = [(widest - x.shape[-1]) // 2 for x in offsets]
        pooled = torch.stack([functional.pad(x, (side, side)) for x, side in zip(offsets, sides, strict=True)])
        found |= _largest("blocked_offsets", pooled.sum(dim=0), widest, first=-(widest // 2))
    kinds = [part.blocked_tokens for part in parts if part.blocked_tokens is not None]
    if kinds:
        tokens = over_passes(kinds)
        found |= _largest("blocked_tokens", tokens.held, len(tokens.ids))
        ids = tokens.ids[found["blocked_tokens:at"].long()].to(torch.float32)
        found["blocked_tokens:at"] = ids.masked_fill(found["blocked_tokens:weight"] == 0.0, 0.0)
        found["blocked_tokens:total"] = tokens.total
    return found
