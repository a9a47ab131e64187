"""Does trying a repair in the run itself show that it helps? The doctor tries what it can, and says what it brought."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import torch

from softscope._text import Lang, Text
from softscope.doctor.faults.catalogue import CHINESE, FAULTS
from softscope.doctor.faults.models import KINDS
from softscope.doctor.faults.runs import DOCTORS_SEED, STEPS, Case, quiet, watched
from softscope.doctor.treat.repairs import TRIED

ROWS = 256
Outcome = Literal["lower", "no difference", "higher", "not tried", "nothing found"]
OUTCOMES: dict[Outcome, Text] = {
    "lower": Text(zh="更低", en="lower"),
    "no difference": Text(zh="看不出差别", en="no clear difference"),
    "higher": Text(zh="更高", en="higher"),
    "not tried": Text(zh="试不了", en="could not be tried"),
    "nothing found": Text(zh="没有发现", en="nothing found"),
}


@dataclasses.dataclass(frozen=True)
class Tried:
    """What the doctor's trial of a repair showed in one run."""

    case: Case
    outcome: Outcome
    said: str = ""


def cases(first: int, seeds: int) -> Iterator[Case]:
    """Every fault whose repair can be tried, in all layers, with one kind of model per seed, half-way through."""
    for place, fault in enumerate(FAULTS):
        fitting = [kind for kind in KINDS if kind.family in fault.families]
        for seed in range(first, first + seeds) if set(fault.codes) & TRIED else ():
            yield Case(fitting[(place + seed) % len(fitting)].name, seed, fault.name, steps=STEPS // 2)


def tried(case: Case) -> Tried:
    """Train with the fault, and ask for a prescription that is tried."""
    quiet()
    with watched(case) as of:
        batch = case.kind.batch(ROWS, torch.Generator().manual_seed(DOCTORS_SEED))
        given = [one for one in of.scope.prescribe(batch, optimizer=of.optimizer) if one.remedy == "repair"]
    if not given:
        return Tried(case, "nothing found")
    trial = given[0].tried
    if trial is None:
        return Tried(case, "not tried", "" if given[0].standing is None else given[0].standing.en)
    outcome: Outcome = "lower" if trial.helps else "higher" if trial.effect.costs else "no difference"
    return Tried(case, outcome, trial.said.en)


HEADS = Text(zh="| 错误 | 次数 |", en="| fault | runs |")
ALL = Text(zh="合计", en="all")


def table(results: Sequence[Tried], lang: Lang = "en") -> str:
    """How often the loss was lower with the repair than without, by fault."""
    shown = [outcome for outcome in OUTCOMES if any(result.outcome == outcome for result in results)]
    lines = [HEADS.of(lang) + "".join(f" {OUTCOMES[outcome].of(lang)} |" for outcome in shown)]
    lines.append("|---" + "|---:" * (1 + len(shown)) + "|")
    for name in [*dict.fromkeys(result.case.name for result in results), ""]:
        mine = [result.outcome for result in results if name in ("", result.case.name)]
        counts = Counter(mine)
        first = ALL.of(lang) if not name else name if lang == "en" else CHINESE[name]
        lines.append(f"| {first} | {len(mine)} |" + "".join(f" {counts[outcome] or ''} |" for outcome in shown))
    return "\n".join(lines)
