"""The checks, one file each; `run` asks them all and counts every answer."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from softscope._bilingual import t
from softscope.doctor.case import Case
from softscope.doctor.checks import (
    broken,
    cause,
    collapse,
    cut_off,
    growing,
    half_precision,
    outlier,
    resting,
    scale,
    starving,
    unfused,
    uniform,
)
from softscope.doctor.checks.base import KIND_NAMES, KINDS, SEVERITIES, Check, Kind, Outcome, Severity
from softscope.doctor.reasons import in_both

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softscope.doctor.snapshot import History

__all__ = ["CHECKS", "KINDS", "KIND_NAMES", "SEVERITIES", "Check", "Kind", "Outcome", "Severity", "counts", "run"]

_MODULES = (
    starving,
    resting,
    growing,
    outlier,
    scale,
    collapse,
    uniform,
    half_precision,
    cut_off,
    unfused,
    cause,
    broken,
)
CHECKS: dict[str, Check] = {module.CHECK.code: module.CHECK for module in _MODULES}


def run(history: History | Case, *, mute: Iterable[str] = ()) -> list[Outcome]:
    """Every outcome of every check, and one "unseen" for each module that could not be seen.

    `mute` names codes, each alone or with a pattern of sites: "SS010", "SS004:encoder.*". What they would have said
    is counted as muted.
    """
    case = history if isinstance(history, Case) else Case(history)
    rules = [rule.partition(":") for rule in mute]
    found = [_muted(case, outcome, rules) for check in CHECKS.values() for outcome in check.run(case)]
    missed = ((name, in_both(why)) for name, why in case.history.unseen)
    hidden = [Outcome("", "unseen", (), t(f"{name}：{why.zh}", f"{name}: {why.en}")) for name, why in missed]
    return found + hidden


def counts(outcomes: Iterable[Outcome]) -> dict[Kind, int]:
    """How many judgements of each kind there are."""
    outcomes = list(outcomes)
    return {kind: sum(o.count for o in outcomes if o.kind == kind) for kind in KINDS}


def _muted(case: Case, outcome: Outcome, rules: Sequence[tuple[str, str, str]]) -> Outcome:
    if outcome.kind not in SEVERITIES:
        return outcome
    site = case.site(outcome.heads[0]).name
    if any(code == outcome.code and fnmatch.fnmatchcase(site, pattern or "*") for code, _, pattern in rules):
        return Outcome(outcome.code, "muted", outcome.heads, outcome.says, outcome.values)
    return outcome
