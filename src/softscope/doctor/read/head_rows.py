"""The rows of one step, head by head, and which of them count for what."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from softscope.doctor.read.tiles import RowReadings

# A single sequence is split into this many runs of rows, and each run counts as a sequence.
RUNS = 8
# A row's demand below this share of the largest demand its head ever had is rounding error: the loss is satisfied. A
# solved task at loss 3e-7 in float32 shows an advantage of 0.7 there, which means nothing.
ROUNDING = 1e-5


@dataclasses.dataclass(eq=False)
class HeadRows:
    """One number per row and reading, (heads, all rows), over all forward passes of a step.

    `cares` are the included rows that the loss cares about: those with a demand above 1e-5 of the largest mean demand
    that the head has had. `judged` are those of which the advantage is known, `blocked` those of them that are blocked.
    """

    parts: list[RowReadings]
    values: dict[str, Tensor]
    valid: Tensor
    included: Tensor
    cares: Tensor
    judged: Tensor | None
    blocked: Tensor | None

    @property
    def many_sequences(self) -> int:
        """How many sequences there are."""
        return sum(part.included.shape[0] for part in self.parts)

    def sequences(self) -> Tensor:
        """The sequence each row belongs to, (all rows,); a single sequence is split into runs of neighbouring rows."""
        shapes = [part.included.shape for part in self.parts]
        device = self.included.device
        if self.many_sequences == 1:
            rows = shapes[0][2]
            return torch.arange(rows, device=device) * min(RUNS, rows) // rows
        first, found = 0, []
        for batch, _, rows in shapes:
            found.append(torch.arange(first, first + batch, device=device).repeat_interleave(rows))
            first += batch
        return torch.cat(found)


def head_rows(parts: list[RowReadings], strongest: Tensor | None) -> HeadRows:
    """Join the forward passes of a step. `strongest` (heads,) is the largest mean demand that each head has had."""

    def joined(kept: list[Tensor]) -> Tensor:
        return torch.cat([x.transpose(0, 1).flatten(1) for x in kept], dim=1)

    names = [name for name in parts[0].values if all(name in part.values for part in parts)]
    values = {name: joined([part.values[name] for part in parts]) for name in names}
    valid, included = (joined([getattr(part, name) for part in parts]) for name in ("valid", "included"))
    cares = included
    if "demand" in values:
        demand = values["demand"]
        most = mean(demand, included & ~demand.isnan())
        most = most if strongest is None else torch.fmax(most, strongest)
        cares = included & (demand > ROUNDING * most.unsqueeze(-1))
    judged = blocked = None
    if "blocked" in values:
        judged = cares & ~values["advantage"].isnan()
        blocked = judged & (values["blocked"] > 0.0)
    return HeadRows(parts, values, valid, included, cares, judged, blocked)


def mean(values: Tensor, of: Tensor) -> Tensor:
    """Mean over the rows where `of` is True; NaN if there are none."""
    return values.masked_fill(~of, 0.0).sum(dim=-1) / of.sum(dim=-1)
