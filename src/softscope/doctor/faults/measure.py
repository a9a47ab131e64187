"""Was a run harmed, was its fault named, and how long before the loss showed it?"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from softscope.doctor.faults.runs import STEPS, Result, Said

CLEAR = 3.0  # standard deviations of healthy runs
SMOOTHED = 10  # steps
# Tips that are no alarm: "suspected, not tried" and "not fused" say so themselves.
NO_ALARM = ("SS010", "SS013")


@dataclasses.dataclass(frozen=True)
class Band:
    """What healthy runs of one kind of model come to: held-out loss, and training loss by step."""

    loss: float
    spread: float
    curve: tuple[float, ...]
    spreads: tuple[float, ...]

    def harmed(self, result: Result) -> bool:
        """Whether the held-out loss is clearly above those of healthy runs."""
        return not result.loss <= self.loss + CLEAR * self.spread

    def left_at(self, result: Result) -> int | None:
        """The first step from which on the training loss is clearly above healthy ones for ten steps; None if never."""
        above = [
            not x <= mean + CLEAR * spread
            for x, mean, spread in zip(_smooth(result.losses), self.curve, self.spreads, strict=True)
        ]
        for step in range(SMOOTHED, STEPS - SMOOTHED):
            if all(above[step : step + SMOOTHED]):
                return step
        return None


def band(healthy: Sequence[Result]) -> Band:
    """The band of these runs; their spread is at least 1% of the loss."""
    curves = [_smooth(result.losses) for result in healthy]
    means = [statistics.fmean(at) for at in zip(*curves, strict=True)]
    losses = [result.loss for result in healthy]
    mean = statistics.fmean(losses)
    return Band(
        mean,
        max(statistics.stdev(losses), 0.01 * mean),
        tuple(means),
        tuple(
            max(statistics.stdev(at), 0.01 * m) for at, m in zip(zip(*curves, strict=True), means, strict=True)
        ),
    )  # fmt: skip


def alarms(result: Result) -> list[Said]:
    """The findings, and the tips that ask for something to be done."""
    return [
        said for said in result.said if said.kind == "finding" or (said.kind == "tip" and said.code not in NO_ALARM)
    ]


def right(result: Result) -> list[Said]:
    """What names the cause, notes included."""
    fault = result.case.fault
    return [] if fault is None else [said for said in result.said if said.code in fault.codes]


def wrong(result: Result) -> list[Said]:
    """Alarms that name something else; any alarm, if there is no fault."""
    fault = result.case.fault
    codes = () if fault is None else (*fault.codes, *fault.also)
    return [said for said in alarms(result) if said.code not in codes]


def places_right(result: Result) -> bool:
    """Whether the layers named are those with the fault, and no other; the first one, for faults of the whole model."""
    named = {said.site for said in right(result)}
    fault = result.case.fault
    if fault is not None and fault.whole:
        return bool(named)
    return named == set(result.touched)


def lead(result: Result, of: Band) -> tuple[float, bool] | None:
    """Steps between naming the cause and the loss showing it, and whether it ever showed; None if it was not named."""
    named = [said.step for said in right(result)]
    if not named:
        return None
    left = of.left_at(result)
    return (STEPS if left is None else left) - min(named), left is not None


def _smooth(losses: Sequence[float]) -> list[float]:
    found = []
    for i in range(len(losses)):
        some = losses[max(0, i - SMOOTHED + 1) : i + 1]
        mean = sum(some) / len(some)
        found.append(mean if math.isfinite(mean) else math.inf)
    return found
