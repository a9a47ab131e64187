"""One line for every head that the doctor judged wrongly, and for every prescription, with the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator

from softscope.doctor.evaluation.counts import kind
from softscope.doctor.evaluation.opinion import named, states
from softscope.doctor.evaluation.patients import Patient
from softscope.doctor.evaluation.projections import Place


def details(patient: Patient) -> Iterator[str]:
    """Lines about one patient."""
    case = patient.case
    who = f"{case.way}, {case.subject.name}, {case.rate:g}, seed {case.seed}"
    spoken = "learned" if patient.learned else "did not learn"
    told = states(patient.opinion.tried)
    summary = {what: sum(kind(patient, x) == what for x in patient.worth) for what in ("useful", "spoiled", "idle")}
    calls = {state: list(told.values()).count(state) for state in dict.fromkeys(told.values())}
    yield f"{who}: loss {patient.loss:.3f}, {spoken}; {summary}; {calls}"
    found = named(patient.opinion.tried)
    for place in patient.worth:
        what, state = kind(patient, place), told.get(place, "unseen")
        if what == "useful" and patient.learned and state in ("starving", "suspected"):
            yield f"  WRONG useful, called {state}: {_head(patient, place)}"
        elif what == "useful" and patient.learned and place in found:
            yield f"  useful, named: {_head(patient, place)}"
        elif what == "spoiled" and place not in found:
            stuck = "stuck" if patient.worth[place].stuck else "spoiled"
            yield f"  MISSED {stuck}, called {state}: {_head(patient, place)}"
        elif what == "idle" and place in found:
            yield f"  idle, named: {_head(patient, place)}"
    for done in patient.outcomes:
        sign = "helped" if done.helped else "HURT" if done.untreated.rises else "no difference"
        yield (
            f"  {sign}: {done.remedy}, {done.heads} heads; at once {_change(done.at_once)}, after training "
            f"{_change(done.untreated)} against none, {_change(done.drawn)} against drawn anew"
        )
    if patient.advice:
        yield f"  {patient.advice} prescriptions cannot be carried out by code"


def _head(patient: Patient, place: Place) -> str:
    """Truth, readings and trial of one head."""
    view = patient.opinion.tried.view
    true = patient.worth[place]
    best = min(true.softer.items(), key=lambda x: x[1].mean, default=None)
    softer = "" if best is None else f", best softer {_change(best[1])} at T={best[0]:g}"
    drawn = "" if true.drawn is None else f", drawn anew {_change(true.drawn)}"
    codes = [
        outcome.code for outcome in patient.opinion.tried.outcomes if outcome.kind in ("finding", "tip")
        for head in outcome.heads if view.site(head).name == place[0] and head.head in (None, place[1])
    ]  # fmt: skip
    read = next(
        (x for head, x in view.states.items() if (view.site(head).name, head.head) == place), None
    )  # fmt: skip
    reading = "" if read is None else (
        f"blocked {read.blocked:.2f}, advantage {read.advantage:.2f} ± {read.error:.2f}, mass {read.mass:.2f}"
    )  # fmt: skip
    trial = patient.opinion.trials.get(place)
    return f"{place[0]} {place[1]} {codes}: truth uniform {_change(true.uniform)}{softer}{drawn}; {reading}; {trial}"


def _change(change: object) -> str:
    return f"{change.mean:+.4f} ± {change.error:.4f}"  # type: ignore[attr-defined]
