"""The report for programs: machine-readable names, and every sentence in both languages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import softscope
from softscope._text import LANGS, Text, said
from softscope.doctor.judge.checks import CHECKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.judge.checks import CheckResult
    from softscope.doctor.judge.history_view import Head, HistoryView
    from softscope.doctor.judge.states import HeadState
    from softscope.doctor.prognosis import Prognosis
    from softscope.doctor.read.effect import Effect
    from softscope.doctor.read.head_trial import HeadTrial
    from softscope.doctor.treat.prescriptions import Prescription
    from softscope.doctor.trial.remedy_result import RemedyTrial

VERSION = 1  # raised when a name is removed or changes its meaning; new names do not raise it


def document(diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    """The report as Python objects that JSON can represent: no NaN, no infinity.

    >>> from softscope.doctor import History, diagnose
    >>> made = document([diagnose(History((), ()))])
    >>> made["schema_version"], made["cases"][0]["has_loss"]
    (1, False)
    """
    return {
        "schema": "softscope.checkup",
        "schema_version": VERSION,
        "softscope_version": softscope.__version__,
        "cases": [_case(diagnosis) for diagnosis in diagnoses],
    }


def _case(diagnosis: Diagnosis) -> dict[str, Any]:
    view = diagnosis.view
    history = view.history
    return {
        "title": _both(diagnosis.title),
        "verdict": _both(diagnosis.verdict),
        "has_loss": view.has_loss,
        "readings": len(history.snapshots),
        "steps": [int(step) for step in (view.steps[0], view.steps[-1])] if len(view.steps) else None,
        "counts": diagnosis.counts,
        "states": diagnosis.states,
        "trials": None if view.cost is None else _both(view.cost),
        "sites": [
            {"name": s.name, "kind": s.kind, "heads": s.heads, "kv_heads": s.kv_heads, "scale": _number(s.scale),
             "head_size": s.head_size, "causal": s.causal, "fused": s.fused, "dropout": s.dropout, "dtype": s.dtype}
            for s in history.sites
        ],
        "heads": [_head(view, head, found) for head, found in view.states.items()],
        "outcomes": [_outcome(view, outcome) for outcome in diagnosis.outcomes],
        "prognosis": None if diagnosis.prognosis is None else _prognosis(diagnosis.prognosis),
        "prescriptions": [_prescription(view, given) for given in diagnosis.prescriptions],
        "unseen": [{"name": name, "why": str(why)} for name, why in history.unseen],
    }  # fmt: skip


def _head(view: HistoryView, head: Head, found: HeadState) -> dict[str, Any]:
    latest = {name: view.value(name, head) for name in _names(view)}
    return {
        **_place(view, head),
        "state": found.state,
        "since": found.since,
        "advantage": _number(found.advantage),
        "advantage_error": _number(found.error),
        "why": None if found.why is None or found.state not in ("unjudged", "suspected") else _both(found.why),
        "trial": None if found.trial is None else _trial(found.trial),
        "readings": {name: _number(x) for name, x in latest.items() if x is not None},
    }


def _trial(trial: HeadTrial) -> dict[str, Any]:
    effects = {"uniform": trial.uniform, "softened": trial.softened, "slope": trial.slope}
    return {
        "verdict": trial.verdict,
        "loss": _number(trial.loss),
        "parts": trial.parts,
        "temperature": _number(trial.temperature),
        **{
            name: None if x is None else {"change": _number(x.change), "error": _number(x.error)}
            for name, x in effects.items()
        },
    }


def _names(view: HistoryView) -> list[str]:
    return sorted({name for snapshot in view.history.snapshots for name in snapshot.readings})


def _outcome(view: HistoryView, outcome: CheckResult) -> dict[str, Any]:
    return {
        "code": outcome.code or None,
        "title": _both(CHECKS[outcome.code].title) if outcome.code else None,
        "kind": outcome.kind,
        "count": outcome.count,
        "heads": [_place(view, head) for head in outcome.heads],
        "says": _both(outcome.says),
        "values": {name: _number(x) for name, x in outcome.values.items()},
    }


def _prescription(view: HistoryView, given: Prescription) -> dict[str, Any]:
    return {
        "remedy": given.remedy,
        "heads": [_place(view, head) for head in given.heads],
        "what": _both(given.what),
        "why": _both(given.why),
        "expect": _both(given.expect),
        "evidence": _both(given.evidence),
        "does_not_help": None if given.does_not is None else _both(given.does_not),
        "code": None if given.treatment is None else given.treatment.code(),
        "advice": None if given.advice is None else _both(given.advice),
        "standing": None if given.standing is None else _both(given.standing),
        "tried": None if given.tried is None else _remedy_trial(given.tried),
    }


def _remedy_trial(trial: RemedyTrial) -> dict[str, Any]:
    def changed(effect: Effect | None) -> dict[str, Any] | None:
        return None if effect is None else {"change": _number(effect.change), "error": _number(effect.error)}

    return {
        "helps": trial.helps,
        "steps": trial.steps,
        "loss_before": _number(trial.before),
        "loss_treated": _number(trial.treated),
        "loss_untreated": _number(trial.untreated),
        "loss_feigned": None if trial.feigned is None else _number(trial.feigned),
        "at_once": changed(trial.at_once),
        "after": changed(trial.after),
        "also_tried": [
            {"name": _both(one.name), "result": _both(one.why), "effect": changed(one.effect)} for one in trial.others
        ],
        "passes": _number(trial.passes),
        "seconds": _number(trial.seconds),
    }


def _prognosis(found: Prognosis) -> dict[str, Any]:
    arms = {"untreated": found.untreated, "treated": found.treated}
    return {
        "course": found.course,
        "steps": found.steps,
        "loss": _number(found.loss),
        **{
            name: None
            if arm is None
            else {"loss": _number(arm.loss), "change": _number(arm.change.change), "error": _number(arm.change.error)}
            for name, arm in arms.items()
        },
    }


def _place(view: HistoryView, head: Head) -> dict[str, Any]:
    return {"site": view.site(head).name, "head": head.head}


def _number(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _both(text: Text | str) -> dict[str, str]:
    return {lang: said(text, lang) for lang in LANGS}
