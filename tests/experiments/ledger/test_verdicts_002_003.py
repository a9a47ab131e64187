"""Every claim of texts 002 and 003 is there, and its verdict is the one recorded: a flip is a change to explain."""

import json
from pathlib import Path

import pytest

from softscope.experiments.ledger import claims

RECORDED = {
    name: verdict
    for text in ("002", "003")
    for name, verdict in json.loads((Path(__file__).parent / f"verdicts_{text}.json").read_text()).items()
}
WANTED = [f"S2-{i:02}" for i in range(1, 65)] + [f"S3-{i:02}" for i in range(1, 60)]
CLAIMS = [claim for claim in claims() if claim.text in ("002", "003")]


def test_every_claim_is_there_and_recorded():
    assert [claim.id for claim in CLAIMS] == WANTED
    assert list(RECORDED) == WANTED


@pytest.mark.parametrize(
    "claim", [pytest.param(c, id=c.id, marks=[pytest.mark.slow] if c.slow else []) for c in CLAIMS]
)
def test_the_verdict_is_the_recorded_one(claim):
    outcome = claim.check()
    assert outcome.verdict == RECORDED[claim.id], f"measured: {outcome.measured}; cases: {outcome.cases}"
