"""The tables of docs/faults.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from softscope.doctor.evaluation.counts import wilson
from softscope.doctor.faults.catalogue import FAULTS
from softscope.doctor.faults.measure import Band, alarms, lead, places_right, right, wrong
from softscope.doctor.faults.runs import RATE, Result

Bands = Callable[[Result], Band]


def share(hits: int, of: int) -> str:
    """A share with its 95% interval."""
    if not of:
        return "–"
    low, high = wilson(hits, of)
    return f"{hits} of {of} ({hits / of:.1%}, 95% interval {low:.1%}–{high:.1%})"


def table(results: Sequence[Result], bands: Bands) -> str:
    """One row for each fault, and the sums that matter."""
    lines = [
        "| fault | checks | runs | harmed | of these: cause named | layers exact | another cause, too | lead, steps | "
        "unharmed: cause named | another cause |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    faulty = [result for result in results if result.case.fault is not None]
    harmed = [result for result in faulty if bands(result).harmed(result)]
    for fault in FAULTS:
        mine = [result for result in faulty if result.case.name == fault.name]
        if not mine:
            continue
        hurt = [result for result in mine if result in harmed]
        well = [result for result in mine if result not in harmed]
        lines.append(
            f"| {fault.name} | {' '.join(fault.codes) or 'none'} | {len(mine)} | {len(hurt)} | {_count(hurt, right)} | "
            f"{_count(hurt, places_right)} | {_count(hurt, wrong)} | {_leads(hurt, bands)} | {_count(well, right)} of "
            f"{len(well)} | {_count(well, wrong)} |"
        )
    controls = [result for result in results if result.case.fault is None]
    hasty = [result for result in controls if result.case.rate > RATE and bands(result).harmed(result)]
    healthy = [result for result in controls if result not in hasty]
    unharmed = [result for result in faulty if result not in harmed]
    nameable = [result for result in harmed if result.case.fault is not None and result.case.fault.codes]
    lines += [
        "",
        f"- Harmed runs whose cause is named: {share(_count(harmed, right), len(harmed))}; of the faults that have a "
        "check "
        f"{share(_count(nameable, right), len(nameable))}; named in exactly the layers that have the fault: "
        f"{share(_count(harmed, places_right), len(harmed))}.",
        f"- Healthy runs with an alarm: {share(_count(healthy, alarms), len(healthy))}. Unharmed runs with an alarm of "
        f"another cause: {share(_count(unharmed, wrong), len(unharmed))}. Both: "
        f"{share(_count(healthy, alarms) + _count(unharmed, wrong), len(healthy) + len(unharmed))}.",
        f"- Runs without a fault that went wrong because of their learning rate: {len(hasty)}, "
        f"{_count(hasty, alarms)} of "
        "them with an alarm.",
    ]
    return "\n".join(lines)


def _count(results: Sequence[Result], of: Callable[[Result], object]) -> int:
    return sum(bool(of(result)) for result in results)


def _leads(results: Sequence[Result], bands: Bands) -> str:
    found = [x for result in results if (x := lead(result, bands(result))) is not None]
    shown = [steps for steps, ever in found if ever]
    never = len(found) - len(shown)
    told = f"{statistics.median(shown):.0f}" if shown else ""
    return " ".join(filter(None, [told, f"({never} never show)" if never else ""])) or "–"
