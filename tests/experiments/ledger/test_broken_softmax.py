"""The ledger really measures: break softmax, and verdicts flip."""

import numpy as np
import pytest

import softscope as ss
from softscope.experiments import ledger

RIGHT = ss.softmax
CLAIMS = {claim.id: claim for claim in ledger.claims()}

# What is broken, and the claims whose verdict must change.
BROKEN = {
    "not normalised": (
        lambda x, **_: np.exp(np.asarray(x)),
        {"S0-02", "S1-13", "S1-14", "S1-07", "S4-02", "S1-18", "S3-02", "S3-03"},
    ),
    "too warm": (
        lambda x, **_: RIGHT(np.asarray(x) / 2.0),
        {"S0-02", "S1-07", "S1-02", "S4-02", "S4-03", "S4-15", "S2-12", "S3-05", "S3-29"},
    ),
    "uniform": (
        lambda x, **_: np.full(np.shape(x), 1.0 / np.shape(x)[-1]),
        {"S0-03", "S0-05", "S0-06", "S4-07", "S2-11", "S3-06"},
    ),
    "hard": (
        lambda x, **_: (np.asarray(x) == np.max(x, -1, keepdims=True)) * 1.0,
        {"S0-02", "S0-30", "S1-18", "S3-01", "S3-05"},
    ),
    "shifted": (lambda x, **_: RIGHT(np.square(x)), {"S0-06", "S0-31", "S1-07", "S4-03", "S3-14", "S3-15"}),
    "off by one": (
        lambda x, **_: np.exp(x) / (1 + np.exp(x).sum(-1, keepdims=True)),
        {"S0-02", "S1-14", "S4-15", "S3-02", "S3-03"},
    ),
}


@pytest.fixture
def broken(monkeypatch):
    ledger.forget()
    yield lambda softmax: monkeypatch.setattr(ss, "softmax", softmax)
    monkeypatch.undo()
    ledger.forget()


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_verdicts_flip(broken, name):
    softmax, wanted = BROKEN[name]
    chosen = [CLAIMS[claim] for claim in sorted(wanted)]
    before = {entry.claim.id: entry.outcome.verdict for entry in ledger.check(chosen)}
    ledger.forget()
    broken(softmax)
    after = {}
    for claim in chosen:
        try:
            after[claim.id] = claim.check().verdict
        except (ValueError, ArithmeticError):  # cases no condition explains, or an inconclusive sample
            after[claim.id] = "raised"
    assert {claim for claim in wanted if before[claim] != after[claim]} == wanted, (before, after)


def test_a_wrong_derivative_flips_the_formula(broken):
    broken(lambda x: RIGHT(2.0 * x) + RIGHT(x).detach() - RIGHT(2.0 * x).detach())  # right values, wrong slope
    assert CLAIMS["S0-11"].check().verdict == "fails"
