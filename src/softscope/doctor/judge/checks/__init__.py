"""The checks, one file each. `run` runs them all and counts every answer."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.checks import (
    broken,
    cause,
    collapse,
    collapsed,
    cut_off,
    frozen,
    graph_cut,
    growing,
    half_precision,
    leak,
    no_position,
    not_attention,
    on_padding,
    outlier,
    resting,
    scale,
    starving,
    suspected,
    too_little,
    unfused,
    uniform,
)
from softscope.doctor.judge.checks.base import KIND_NAMES, KINDS, SEVERITIES, Check, CheckResult, Kind, Severity
from softscope.doctor.judge.history_view import HistoryView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softscope.doctor.read.snapshot import History

__all__ = ["CHECKS", "KINDS", "KIND_NAMES", "SEVERITIES", "Check", "CheckResult", "Kind", "Severity", "counts", "run"]

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
    suspected,
    leak,
    on_padding,
    too_little,
    graph_cut,
    frozen,
    collapsed,
    not_attention,
    no_position,
)
CHECKS: dict[str, Check] = {module.CHECK.code: module.CHECK for module in _MODULES}


def run(history: History | HistoryView, *, mute: Iterable[str] = ()) -> list[CheckResult]:
    """Run every check and return all results, plus one "unseen" result for each module that could not be seen.

    Args:
        history: the run to judge.
        mute: check codes to silence, alone or with a site pattern: "SS010", "SS004:encoder.*". Results they would have
            given count as muted.
    """
    view = history if isinstance(history, HistoryView) else HistoryView(history)
    rules = [rule.partition(":") for rule in mute]
    found = [_muted(view, outcome, rules) for check in CHECKS.values() for outcome in check.run(view)]
    missed = ((name, why.text) for name, why in view.history.unseen)
    hidden = [
        CheckResult("", "unseen", (), Text(zh=f"{name}：{why.zh}", en=f"{name}: {why.en}")) for name, why in missed
    ]
    return found + hidden


def counts(outcomes: Iterable[CheckResult]) -> dict[Kind, int]:
    """Number of judgements of each kind."""
    outcomes = list(outcomes)
    return {kind: sum(o.count for o in outcomes if o.kind == kind) for kind in KINDS}


def _muted(view: HistoryView, outcome: CheckResult, rules: Sequence[tuple[str, str, str]]) -> CheckResult:
    if outcome.kind not in SEVERITIES:
        return outcome
    site = view.site(outcome.heads[0]).name
    if any(code == outcome.code and fnmatch.fnmatchcase(site, pattern or "*") for code, _, pattern in rules):
        return CheckResult(outcome.code, "muted", outcome.heads, outcome.says, outcome.values)
    return outcome
