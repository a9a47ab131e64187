"""Every claim is there once, says the same in both languages, and gets its recorded verdict.

A verdict that flips fails here. If the change is intended, update verdicts_00N.json and say why in the commit.
"""

import functools
import json
import pathlib
import re
from collections import Counter

import pytest

from softscope import experiments
from softscope._text import Text, said
from softscope.experiments import ledger
from softscope.experiments.ledger import places

HERE = pathlib.Path(__file__).parent
IDS = (HERE / "ids.txt").read_text().split()
RECORDED = {
    name: verdict
    for path in sorted(HERE.glob("verdicts_*.json"))
    for name, verdict in json.loads(path.read_text()).items()
}
CLAIMS = {claim.id: claim for claim in ledger.claims()}
CHINESE = re.compile(r"[\u3400-\u9fff\u3001\u3002\uff00-\uffef]")
# Whole numbers up to ten may be spelled out in one of the languages.
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
SMALL = {str(n) for n in range(11)}


def marked(name):
    return pytest.param(name, marks=pytest.mark.slow) if CLAIMS[name].slow else name


def test_the_list_is_whole():
    """219 statements; if any are missing, they are named."""
    assert len(IDS) == len(set(IDS)) == 219
    assert Counter(name[:2] for name in IDS) == {"S0": 32, "S1": 40, "S2": 64, "S3": 59, "S4": 24}
    assert sorted(set(IDS) - CLAIMS.keys()) == [], "claims without a check"
    assert sorted(CLAIMS.keys() - set(IDS)) == [], "checks without a claim"


def test_every_verdict_is_on_record():
    assert sorted(CLAIMS.keys() - RECORDED.keys()) == []
    assert set(RECORDED.values()) <= set(ledger.VERDICTS)
    for path in HERE.glob("verdicts_*.json"):
        assert all(f"00{name[1]}" == path.stem[-3:] for name in json.loads(path.read_text()))


def texts(claim, outcome):
    yield from (claim.says, outcome.measured, outcome.because, *(case.label for case in outcome.cases))
    yield from (text for text in (outcome.only_if, outcome.instead) if text is not None)


def figures(text):
    return Counter(number for number in NUMBER.findall(text) if number not in SMALL)


@pytest.mark.parametrize("name", [marked(name) for name in CLAIMS])
def test_claim(name):
    claim = CLAIMS[name]
    (entry,) = ledger.check([claim])
    outcome = entry.outcome
    cases = {said(case.label, "en"): case.held for case in outcome.cases}
    assert outcome.verdict == RECORDED.get(name), f"{said(outcome.measured, 'en')} {cases}"
    for text in texts(claim, outcome):
        english, chinese = said(text, "en"), said(text, "zh")
        assert english
        assert chinese
        assert not CHINESE.search(english)
        assert figures(english) == figures(chinese), "the languages differ in a number"
        assert "nan" not in re.split(r"\W", english) or name in NANS
    for text in (claim.says, outcome.because):
        assert isinstance(text, Text)
        assert CHINESE.search(text.zh) or name in FORMULAS
    assert outcome.because.en.endswith(".")
    assert outcome.because.zh.endswith("。")
    assert not claim.says.en.endswith(".")
    assert claim.where


def test_every_claim_quotes_its_text():
    assert sorted(name for name, claim in CLAIMS.items() if not claim.quote.strip()) == []
    assert max(len(claim.quote) for claim in CLAIMS.values()) <= 160, "a few words, not the page"


@pytest.mark.parametrize("name", [marked(name) for name in CLAIMS])
def test_a_failing_claim_says_what_is_true_and_a_reason_explains(name):
    outcome = CLAIMS[name].check()
    if outcome.verdict == "fails":
        assert outcome.instead is not None, "what is true?"
        for text in (outcome.instead.en, outcome.instead.zh):
            assert "\n" not in text
            assert text[-1] not in ".。", "one form for all: as in `says`"
    assert outcome.verdict in outcome.reasons
    assert (outcome.evidence == "quoted") == bool(outcome.source)
    if outcome.cases:
        assert outcome.turned(outcome.verdict != "holds").because != outcome.because, "the same reason either way"


FORMULAS = {"S4-18", "S4-22"}  # the claim is a formula, the same in both languages
NANS = {"S3-12"}  # the claim is about NaN


def test_formulas_are_the_same_in_both_languages():
    assert {name for name, claim in CLAIMS.items() if claim.says.zh == claim.says.en} == FORMULAS


def test_places_are_said_in_chinese_too():
    words = {word for claim in CLAIMS.values() for word in re.findall(r"[A-Za-z]{4,}", claim.where)}
    assert len(words) > 5
    assert sorted(words - places.WORDS.keys()) == []


def test_experiments_are_those_that_there_are():
    used = {claim.experiment for claim in CLAIMS.values()} - {""}
    assert used <= set(experiments.NAMES)
    assert len(used) > 5


@functools.cache
def some_outcomes(order):
    names = ["S0-21", "S1-16", "S1-24", "S4-01"]
    entries = ledger.check([CLAIMS[name] for name in (names if order else names[::-1])])
    return {entry.claim.id: entry.outcome for entry in entries}


def test_the_order_does_not_matter():
    assert some_outcomes(True) == some_outcomes(False)
