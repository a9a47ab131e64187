"""From findings to one plan: each head that needs a remedy is in exactly one prescription, with one remedy and dose.

Findings overlap: a head without 1/√d starves, has large logits and stands out among its siblings. The nearest cause
decides: a fault such as a leaking mask, a missing scale, then starvation, then a head that stands out, then logits that
grow. Advice for the next run is added to the prescription of the same heads.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.judge.history_view import Head
from softscope.doctor.treat import doses, wordings
from softscope.doctor.treat.repairs import EXPECTED, repair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.doctor.judge.checks import CheckResult
    from softscope.doctor.judge.history_view import HistoryView
    from softscope.doctor.treat.prescriptions import Prescription
    from softscope.doctor.treat.treatment import Treatment

SPARED = frozenset({"useful", "idle"})  # a trial showed that nothing is to be gained there
HUNGRY = ("SS001", "SS013")  # starving, and suspected of it
# A tip of these is a finding that nobody has tried: its prescription is a candidate.
DOUBTED = (*HUNGRY, "SS005", "SS006", "SS021")
ADVICE = ("SS006", "SS008", "SS009")


def plans(view: HistoryView, outcomes: Sequence[CheckResult]) -> list[Prescription]:
    """The prescriptions for the findings, untried, the nearest causes first; merely informative results get none."""
    found: dict[str, dict[Head, CheckResult]] = {}
    for outcome in outcomes:
        if outcome.kind == "finding" or (outcome.kind == "tip" and outcome.code in DOUBTED):
            for head in outcome.heads:
                found.setdefault(outcome.code, {})[head] = outcome
    left = {head for head in view.heads if not _spared(view, head)}
    given: list[Prescription] = []

    def take(heads: Sequence[Head]) -> tuple[Head, ...]:
        """Those that are still without a prescription, the worst first."""
        mine = tuple(head for head in dict.fromkeys(heads) if head in left)
        left.difference_update(mine)
        return tuple(sorted(mine, key=lambda head: _severity(view, head), reverse=True))

    mended: set[Head] = set()
    for code in EXPECTED:
        broken = {head.site for head in found.get(code, {})}
        faulty = tuple(head for head in view.heads if head.site in broken and head not in mended)
        mended.update(faulty)  # also those that a trial found useful: what leaks is useful
        left.difference_update(faulty)
        given += [repair(view, code, faulty, found[code].items())] if faulty else []
    sites = {head.site for head in found.get("SS005", {})}
    starved, doubted = (list(found.get(code, {})) for code in HUNGRY)
    hungry = {*starved, *doubted}
    scaled = take([head for head in view.heads if head.site in sites])
    if scaled:
        given.append(_made(wordings.scale(view, scaled), doses.reviving(view, scaled, missing=True), freed=True))
    outliers = [head for head in found.get("SS004", {}) if head.head is not None]
    for some in ([head for head in outliers if head in hungry], starved, doubted):  # the doubted apart: may be useful
        heads = take(some)
        if heads and heads[0] in outliers:
            ways = doses.distinct(*doses.reviving(view, heads), doses.clip(view, heads, None))
            given.append(_made(wordings.outlier(heads), ways, freed=True))
        elif heads:
            given.append(_made(wordings.starving(heads), doses.reviving(view, heads), freed=True))
    lone = take(outliers)
    if lone:
        given.append(
            _made(wordings.outlier(lone), doses.distinct(doses.clip(view, lone, None), doses.anew(view, lone)))
        )
    growing = take(list(found.get("SS003", {})))
    if growing:
        given.append(_made(wordings.growing(growing), doses.distinct(doses.clip(view, growing, doses.CLIP))))
    for code in ADVICE:
        given = _advised(view, given, code, found.get(code, {}))
    return given


def _made(worded: Prescription, ways: tuple[Treatment, ...], *, freed: bool = False) -> Prescription:
    return dataclasses.replace(worded, treatment=ways[0] if ways else None, candidates=ways, freed=freed)


def _advised(
    view: HistoryView, given: list[Prescription], code: str, found: dict[Head, CheckResult]
) -> list[Prescription]:
    """Add a sentence to the prescriptions of these heads; heads without one get a prescription that is only advice."""
    if code == "SS009":
        found = {head: outcome for head, outcome in found.items() if outcome.values.get("demand") == 0.0}
    if not found:
        return given
    wanted = set(found)
    placed = {head for one in given for head in one.heads}
    alone = tuple(head for head in found if head not in placed and not _spared(view, head))
    advise = wordings.ADVISED[code]
    given = [
        dataclasses.replace(one, advice=_joined(one.advice, advise(one.heads).what)) if wanted & set(one.heads) else one
        for one in given
    ]
    return [*given, advise(alone)] if alone else given


def _spared(view: HistoryView, head: Head) -> bool:
    if head.head is None:
        return False
    known = view.states[head]
    return known.state in SPARED or (known.state == "resting" and known.trial is not None)


def _joined(one: Text | None, other: Text) -> Text:
    if one is None:
        return other
    return Text(zh=f"{one.zh}；{other.zh}", en=f"{one.en}; {other.en}")


def _severity(view: HistoryView, head: Head) -> tuple[float, float]:
    return view.value("blocked", head) or 0.0, view.value("max_logit", head) or 0.0
