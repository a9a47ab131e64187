"""Every claim can come out the other way: in an invented world it gets another verdict, and another reason."""

import json

import pytest

from experiments.ledger.test_claims import CLAIMS, RECORDED
from experiments.ledger.worlds import WHY_NOT, WORLDS
from softscope.experiments import ledger

DECIDED = ("holds", "only-if", "fails")


@pytest.fixture
def invented(monkeypatch):
    ledger.forget()
    yield monkeypatch
    monkeypatch.undo()
    ledger.forget()


def test_every_claim_has_a_world_or_a_reason_why_not():
    assert sorted(CLAIMS.keys() - WORLDS.keys() - WHY_NOT.keys()) == []
    assert sorted(WORLDS.keys() & WHY_NOT.keys()) == []
    assert sorted((WORLDS.keys() | WHY_NOT.keys()) - CLAIMS.keys()) == []
    assert all(len(reason) > 20 for reason in WHY_NOT.values())


@pytest.mark.parametrize("name", sorted(WORLDS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_other_way_round(invented, name):
    world = WORLDS[name]
    for target, value in world.patches.items():
        invented.setattr(target, value)
    outcome = CLAIMS[name].check()
    assert outcome.verdict == world.verdict, [tuple(case) for case in outcome.cases]
    assert world.verdict != RECORDED[name], "nothing flipped"
    if world.verdict in DECIDED and RECORDED[name] in DECIDED:
        # The reason for the recorded verdict must not be said of another one.
        assert outcome.because != outcome.reasons.get(RECORDED[name])
    json.dumps([case.held for case in outcome.cases])


def test_why_not_is_mostly_for_what_nothing_here_decides():
    decided = [name for name in WHY_NOT if RECORDED[name] in DECIDED]
    assert len(decided) <= 15, decided
