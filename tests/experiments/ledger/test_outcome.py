"""A verdict follows from the cases, a comparison within the noise raises, and no result is typed in."""

import math

import numpy as np
import pytest

from softscope._text import Text
from softscope.experiments import ledger
from softscope.experiments.ledger import Estimate, NoiseError, Outcome, cited, claim, cut, equal, near, opinion, within

WHY = Text(zh="因为。", en="Because.")
REASONS = dict.fromkeys(("holds", "only-if", "fails"), WHY)
SO = Text(zh="条件", en="so")


@pytest.mark.parametrize(
    ("parts", "under", "verdict"),
    [
        ({"a": True}, {}, "holds"),
        ({"a": True, "b": True}, {}, "holds"),
        ({"a": False}, {}, "fails"),
        ({"a": True, "b": False}, {}, "fails"),  # a sentence with a false half
        ({}, {"a": True, "b": True}, "holds"),
        ({}, {"a": True, "b": False}, "only-if"),
        ({}, {"a": False, "b": False}, "fails"),
        ({"c": True}, {"a": True, "b": False}, "only-if"),
        ({"c": False}, {"a": True, "b": True}, "fails"),
        ({"c": np.True_}, {"a": np.True_, "b": np.False_}, "only-if"),
    ],
)
def test_the_verdict_follows_from_the_cases(parts, under, verdict):
    outcome = Outcome.of(parts, under=under, measured="1", because=REASONS, only_if=SO)
    assert outcome.verdict == verdict
    assert all(type(case.held) is bool for case in outcome.cases)


def test_a_condition_is_needed_where_inputs_differ():
    with pytest.raises(ValueError, match="only_if must say for which inputs"):
        Outcome.of(under={"a": True, "b": False}, measured="1", because=REASONS)
    with pytest.raises(ValueError, match="at least one case"):
        Outcome.of({}, measured="1", because=REASONS)
    with pytest.raises(ValueError, match="source must name"):
        Outcome.of({"a": True}, measured="1", because=REASONS, evidence="quoted")


def test_the_reason_follows_from_the_verdict():
    outcome = Outcome.of({"a": True, SO: False}, measured="1", because={"fails": WHY})
    assert outcome.because == WHY
    assert outcome.turned(True).because == Text(zh="各项都成立：a；条件。", en="Everything holds: a; so.")
    held = Outcome.of({"a": True, SO: True}, measured="1", because={"holds": WHY})
    assert held.turned(False).because == Text(zh="不成立的有：a；条件。", en="What does not hold: a; so.")


def test_labels_for_what_cannot_be_measured():
    assert cited(source="X 2020", supports=True, because=WHY).verdict == "cited"
    assert opinion(WHY).verdict == "opinion"
    assert opinion(WHY).because == WHY
    with pytest.raises(ValueError, match="source must name"):
        cited(source="", supports=True, because=WHY)


def test_what_is_quoted_supports_or_contradicts():
    def quoted(held):
        return Outcome.of({"a": held}, measured="1", because=REASONS, evidence="quoted", source="X 2020")

    assert (quoted(True).stance, quoted(False).stance) == ("supports", "contradicts")
    assert [cited(source="X", supports=held, because=WHY).stance for held in (True, False)] == [
        "supports",
        "contradicts",
    ]
    assert opinion(WHY).stance is None
    assert Outcome.of({"a": True}, measured="1", because=REASONS).stance is None


def test_within_the_noise_nothing_is_decided():
    x = Estimate(1.0, 0.01, 100)
    assert x.above(0.9)
    assert not x.above(1.1)
    assert x.below(1.1)
    assert not x.below(0.9)
    assert x.agrees(1.0, 0.1)
    assert not x.agrees(2.0, 0.1)
    for question in (lambda: x.above(0.97), lambda: x.below(1.03), lambda: x.agrees(1.08, 0.1)):
        with pytest.raises(NoiseError, match="4 standard errors"):
            question()
    with pytest.raises(NoiseError):
        Estimate(math.nan, math.nan, 1).above(0.0)


def test_estimates_are_right():
    samples = np.random.default_rng(0).standard_normal((400, 1000)) * 2.0 + 3.0
    means = [ledger.estimate(row) for row in samples]
    assert abs(np.std([x.mean for x in means]) / np.mean([x.error for x in means]) - 1.0) < 0.1
    variances = [ledger.variance_of(row) for row in samples]
    assert abs(np.mean([x.mean for x in variances]) - 4.0) < 0.05
    assert abs(np.std([x.mean for x in variances]) / np.mean([x.error for x in variances]) - 1.0) < 0.1
    assert f"{Estimate(1.0, 1e-5, 9):.2f}" == "1.00 ± 1e-05", "a rounded error would read as certainty"


def test_printed_digits_decide():
    assert near(0.3849, "0.38")
    assert not near(0.3851, "0.38")
    assert near(0.125, "0.13")
    assert near(0.125, "0.12")
    assert near(-1.326, "-1.3")
    assert not near(math.nan, "0.0")
    assert not near([1.0, 2.0], ["1", "3"])
    with pytest.raises(ValueError, match="zip"):
        near([1.0], ["1", "2"])
    assert cut(22.9, "22")
    assert not cut(21.9, "22")
    assert within(1.0, 1.0, 2.0)


def test_symbols_decide():
    z, s = ledger.symbols(3)
    assert equal(s.jacobian(z), s.jacobian(z).T)
    assert not equal(s.jacobian(z), 2 * s.jacobian(z))
    assert equal(sum(s), 1)
    assert not equal(s[0], s[1])


@pytest.mark.parametrize(("name", "experiment"), [("S9-01", ""), ("S1-3", ""), ("s1-03", ""), ("S1-03", "nonsense")])
def test_a_claim_is_named_rightly(name, experiment):
    with pytest.raises(ValueError, match="must"):
        claim(name, says=WHY, where="L1", experiment=experiment)


def test_who_stands_in_a_contradiction():
    one, other = ledger.Contradiction(("S0-01",), ("S1-01", "S1-02"), WHY), ("S1-01", "S1-02")
    table = {
        ("holds", "fails", "holds"): "one",
        ("only-if", "holds", "holds"): "other",
        ("only-if", "holds", "only-if"): "each in its own case",
        ("holds", "holds", "holds"): "both",
        ("fails", "fails", "holds"): "neither",
        ("fails", "only-if", "cited"): "other",
    }
    for (first, *rest), winner in table.items():
        verdicts = {"S0-01": first, **dict(zip(other, rest, strict=True))}
        assert ledger.Settled(one, verdicts).winner == winner, verdicts


def test_contradictions_name_claims_that_there_are():
    known = {claim.id for claim in ledger.claims()}
    assert len(ledger.CONTRADICTIONS) > 5
    for found in ledger.CONTRADICTIONS:
        assert set(found.ids) <= known, found
        assert {name[1] for name in found.one}.isdisjoint(name[1] for name in found.other), "one text alone"
    entries = ledger.check([claim for claim in ledger.claims() if claim.id in {"S0-01", "S1-18"}])
    assert [found.winner for found in ledger.settled(entries)] == ["other"]
    assert ledger.settled(entries[:1]) == []
