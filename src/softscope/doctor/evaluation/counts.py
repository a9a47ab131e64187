"""Counts: how often the doctor was right about heads whose worth is known, and how sure such a share is."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Literal

from softscope.doctor.evaluation.opinion import Cost, in_state, named, states
from softscope.doctor.evaluation.patients import Patient
from softscope.doctor.evaluation.projections import Place

Kind = Literal["useful", "spoiled", "idle"]  # idle: not touched, and not useful


@dataclasses.dataclass
class Count:
    """Counts for one way.

    Attributes:
        models: How many.
        learned: How many of them learned.
        heads: Heads of the models that learned.
        judged: Those of them that the doctor judged.
        useful: Those of them without which the loss rises.
        starving: Useful heads called starving, with a trial. None is wanted.
        suspected: Useful heads called starving or suspected, without a trial.
        blind: Useful heads named by a finding or tip from forward passes alone.
        spoiled: Heads that were touched and are not useful, of all models.
        named: Those of them that a finding names.
        named_blind: Those that a finding or tip names from forward passes alone.
        stuck: Spoiled heads that the truth shows to be stuck: uniform, softer or drawn anew, the loss falls.
        stuck_named: Those of them that a finding names.
        given: Prescriptions that code can carry out.
        helped: Those that lowered the held-out loss, see `Outcome.helped`.
        hurt: Those after which it is clearly higher than without treatment.
        beat: Those after which it is not clearly higher than with the heads drawn anew.
        advice: Prescriptions that code cannot carry out.
        cost: Of the trials.
    """

    models: int = 0
    learned: int = 0
    heads: int = 0
    judged: int = 0
    useful: int = 0
    starving: int = 0
    suspected: int = 0
    blind: int = 0
    spoiled: int = 0
    named: int = 0
    named_blind: int = 0
    stuck: int = 0
    stuck_named: int = 0
    given: int = 0
    helped: int = 0
    hurt: int = 0
    beat: int = 0
    advice: int = 0
    cost: Cost = dataclasses.field(default_factory=Cost)

    def __add__(self, other: Count) -> Count:
        return Count(*(getattr(self, x.name) + getattr(other, x.name) for x in dataclasses.fields(Count)))


def kind(patient: Patient, place: Place) -> Kind:
    """What a head truly is."""
    return "useful" if patient.worth[place].useful else "spoiled" if place in patient.touched else "idle"


def count(patient: Patient) -> Count:
    """The counts of one patient."""
    said = patient.opinion
    of = {place: kind(patient, place) for place in patient.worth}
    useful = {place for place, what in of.items() if what == "useful" and patient.learned}
    spoiled = {place for place, what in of.items() if what == "spoiled"}
    stuck = {place for place in spoiled if patient.worth[place].stuck}
    guessed = named(said.blind, "finding", "tip")
    done = patient.outcomes
    return Count(
        models=1, learned=int(patient.learned),
        heads=len(of) if patient.learned else 0,
        judged=len(of) - len(in_state(said.tried, "unjudged") & set(of)) if patient.learned else 0,
        useful=len(useful),
        starving=len(useful & in_state(said.tried, "starving")),
        suspected=len(useful & in_state(said.untried, "starving", "suspected")),
        blind=len(useful & guessed),
        spoiled=len(spoiled), named=len(spoiled & named(said.tried)), named_blind=len(spoiled & guessed),
        stuck=len(stuck), stuck_named=len(stuck & named(said.tried)),
        given=len(done), helped=sum(x.helped for x in done), hurt=sum(x.untreated.rises for x in done),
        beat=sum(not x.drawn.rises for x in done), advice=patient.advice, cost=said.cost,
    )  # fmt: skip


def crossed(patients: list[Patient]) -> collections.Counter[tuple[str, Kind, str]]:
    """How many heads of each way are what, and are called what."""
    return collections.Counter(
        (patient.case.way, kind(patient, place), state)
        for patient in patients
        for place, state in states(patient.opinion.tried).items()
        if place in patient.worth
    )


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a share, after Wilson.

    >>> [round(x, 3) for x in wilson(0, 1000)], [round(x, 3) for x in wilson(95, 100)]
    ([0.0, 0.004], [0.888, 0.978])
    """
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    away = math.sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return max(0.0, middle - away), min(1.0, middle + away)
