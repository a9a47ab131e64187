"""Every fault that a check can see at once is named within a few steps, in its layer and no other."""

from __future__ import annotations

import pytest

from softscope.doctor.faults.catalogue import FAULTS, Fault
from softscope.doctor.faults.measure import alarms, places_right, right, wrong
from softscope.doctor.faults.models import KINDS, Kind
from softscope.doctor.faults.runs import Case, quiet, run

STEPS = 4
LATER = {"W_Q and W_K × 8", "scores in float16"}  # show in what training does to the model
NAMEABLE = [fault for fault in FAULTS if fault.codes and fault.name not in LATER]


def kind_for(fault: Fault, place: int) -> Kind:
    """Each fault gets one of the kinds that it fits, so that all of them have their turn."""
    fitting = [kind for kind in KINDS if kind.family in fault.families]
    return fitting[place % len(fitting)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", [0, 1])  # by sdpa, and step by step
def test_a_healthy_model_has_no_alarm(kind: Kind, seed: int) -> None:
    quiet()
    result = run(Case(kind.name, seed, steps=STEPS))
    assert alarms(result) == []
    assert result.losses[0] > 3.0


@pytest.mark.parametrize(("place", "fault"), list(enumerate(NAMEABLE)), ids=[fault.name for fault in NAMEABLE])
def test_it_is_named_where_it_is_and_nothing_else_is(place: int, fault: Fault) -> None:
    quiet()
    result = run(Case(kind_for(fault, place).name, place % 2, fault.name, mild=not fault.whole, steps=STEPS))
    assert right(result), result.said
    assert places_right(result), (result.touched, result.said)
    assert wrong(result) == []


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) >= 20
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {kind_for(fault, place).name for place, fault in enumerate(NAMEABLE)} == {kind.name for kind in KINDS}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.codes], ids=lambda fault: fault.name)
def test_what_does_no_harm_raises_no_alarm(fault: Fault) -> None:
    quiet()
    assert alarms(run(Case(kind_for(fault, 0).name, 0, fault.name, steps=STEPS))) == []
