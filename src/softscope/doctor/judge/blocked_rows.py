"""Where the blocked rows of a head put their weight, over as many of the last readings as it takes to know."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softscope.doctor.judge.thresholds import ASKED, ENOUGH_ROWS, IN_A_ROW

if TYPE_CHECKING:
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.read.snapshot import Array


_MANY = 1000.0


class BlockedRows(NamedTuple):
    """How many blocked rows were read, and the largest shares of their weight: on one key, at one offset, on one token.

    With few rows a share is a rough guess: one row of five off the sink makes 0.8 of 1.0.

    >>> few, many = BlockedRows(5.0, 0.8, math.nan), BlockedRows(500.0, 0.8, math.nan)
    >>> few.reaches(few.mass, 0.9), many.reaches(many.mass, 0.9)
    (True, False)
    """

    rows: float
    mass: float
    offset_mass: float
    token_mass: float = math.nan

    @classmethod
    def of(cls, view: HistoryView, head: Head, since: int) -> BlockedRows:
        """Pool the last readings since a step: three, or more until there are enough rows.

        Records made before rows were counted hold no counts; their readings count alike, as many rows.
        """
        recent = view.steps >= since
        blocked = view.series("blocked", head)[recent]
        rows = view.series("judged", head)[recent]
        taken = ~np.isnan(blocked)
        weights = np.where(np.isnan(rows), _MANY, blocked * rows)[taken]
        last = max(1, int(IN_A_ROW.value))
        while weights[-last:].sum() < ENOUGH_ROWS.value and last < min(len(weights), ASKED):
            last += 1
        shares = [
            _mean(view.series(name, head)[recent][taken][-last:], weights[-last:])
            for name in ("blocked_mass", "blocked_offset_mass", "blocked_token_mass")
        ]
        return cls(float(weights[-last:].sum()), *shares)

    def reaches(self, share: float, wanted: float) -> bool:
        """Whether a share of the weight is at least this large, or no further below than one standard error."""
        if math.isnan(share):
            return False
        inside = min(max(share, 0.0), 1.0)
        return share + math.sqrt(inside * (1.0 - inside) / max(self.rows, 1.0)) >= wanted


def _mean(values: Array, weights: Array) -> float:
    known = ~np.isnan(values) & (weights > 0.0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan
