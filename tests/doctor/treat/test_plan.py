"""One plan: every head has one remedy, with a dose that lets it learn; and whoever was not tried is told so."""

import dataclasses
import json

import pytest

from doctor.judge.histories import IDLE, STARVES, STUCK, USEFUL, history, per_head, starving
from softscope._text import LANGS
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.judge.checks import CHECKS
from softscope.doctor.judge.history_view import Head
from softscope.doctor.read.effect import Effect
from softscope.doctor.report import document, lines, page
from softscope.doctor.treat.treatment import Treatment
from softscope.doctor.trial.remedy_result import AlsoTried, RemedyTrial

SITE = "layers.0.attention"
LONG = range(0, 1000, 100)
# All that can be wrong with a head at once: stuck, huge, standing out, fallen, near the end of its format.
MESS = per_head(1, STUCK) | {
    "max_logit": {1: 1794.0, 2: 2000.0}, "q_norm": {1: 240.0}, "lse_min": {1: -99.0, 0: -99.0},
    "sharpness": {1: [0.1, 0.2, *8 * [0.98]]},
}  # fmt: skip


def treated(given):
    return [(site, head) for site, doses in given.treatment.heads.items() for head in doses] if given.treatment else []


@pytest.mark.parametrize("scale", [0.125, 1.0])
def test_every_head_is_in_one_prescription_with_one_remedy(scale):
    found = starving(history(steps=LONG, site={"dtype": "float16", "scale": scale}, **MESS), 1)
    diagnosis = diagnose(found)
    codes = {
        code for code, fired in diagnosis.of("finding").items() if Head(0, 1) in [h for o in fired for h in o.heads]
    }
    assert {"SS001", "SS003", "SS004", "SS006", "SS008"} <= codes, "one head, five findings"
    given = diagnosis.prescriptions
    heads = [head for one in given for head in one.heads]
    assert len(heads) == len(set(heads))
    assert all(head.head is not None for head in heads)
    doses = [place for one in given for place in treated(one)]
    assert len(doses) == len(set(doses))
    (mine,) = [one for one in given if Head(0, 1) in one.heads]
    assert "bfloat16" in mine.advice.en, "advice is a sentence of the plan, not a card"
    assert "learning rate" in mine.advice.en
    assert heads.count(Head(0, 0)) == 1


def test_the_dose_leaves_a_starving_head_able_to_learn():
    """It was clipped to 100, starved on, and only a second checkup prescribed a temperature."""
    (given,) = diagnose(
        starving(history(steps=LONG, **per_head(1, STUCK) | {"max_logit": {1: 1794.0}}), 1)
    ).prescriptions
    assert given.treatment == Treatment("temperature", {SITE: {1: 359.0}})
    assert given.freed
    assert {one.remedy for one in given.candidates} == {"temperature", "reinitialise", "qk-clip"}
    assert all(tau == 5.0 for one in given.candidates for tau in one.tau.values())


@pytest.mark.parametrize("result", [USEFUL, IDLE])
def test_a_useful_or_idle_head_gets_nothing(result):
    found = history(steps=LONG, **per_head(1, STUCK) | {"max_logit": {1: 1794.0}, "q_norm": {1: 240.0}})
    given = diagnose(found, trials={(SITE, 1): result}).prescriptions
    assert Head(0, 1) not in [head for one in given for head in one.heads]
    assert diagnose(found, trials={(SITE, 1): STARVES}).prescriptions


def test_a_missing_scale_treats_all_heads_of_the_layer_but_the_useful_ones():
    found = history(site={"scale": 1.0}, blocked=0.9)
    (given,) = diagnose(found, trials={(SITE, 0): STARVES, (SITE, 2): USEFUL}).prescriptions
    assert given.remedy == "scale"
    assert sorted(head.head for head in given.heads) == [0, 1, 3]
    assert [one.remedy for one in given.candidates].count("unit-qk-norm") == 0, "it would treat the useful head, too"


def test_the_worst_head_comes_first():
    found = history(blocked={0: 0.5, 1: 0.9, 2: 0.7}, max_logit={0: 50.0, 1: 60.0, 2: 70.0})
    (given,) = diagnose(found, trials={(SITE, head): STARVES for head in range(3)}).prescriptions
    assert [head.head for head in given.heads] == [1, 2, 0]


def test_what_was_not_tried_says_so_everywhere():
    diagnosis = diagnose(history(**per_head(1, STUCK) | {"max_logit": {1: 100.0}}))
    (given,) = diagnosis.prescriptions
    assert given.tried is None
    assert given.standing.en.startswith("candidate, not tried")
    for lang in LANGS:
        told = given.standing.of(lang)
        assert told[1:] in "\n".join(line.text for line in lines(diagnosis, lang))
        assert told in page([diagnosis], lang)
    (case,) = document([diagnosis])["cases"]
    (entry,) = case["prescriptions"]
    assert entry["tried"] is None
    assert entry["standing"]["en"] == given.standing.en


TRIED = RemedyTrial(
    before=2.31, treated=1.9, untreated=2.3, at_once=Effect(-0.01, 0.02, 8), after=Effect(-0.4, 0.02, 8), steps=20,
    others=(AlsoTried(*[diagnose(history()).verdict] * 2, Effect(float("nan"), float("nan"))),), passes=38.0,
    seconds=3.2,
)  # fmt: skip


@pytest.mark.parametrize("helps", [True, False])
def test_what_was_tried_is_told_with_its_figures_everywhere(helps):
    diagnosis = diagnose(history(**per_head(1, STUCK) | {"max_logit": {1: 100.0}}))
    (given,) = diagnosis.prescriptions
    given = dataclasses.replace(given, tried=dataclasses.replace(TRIED, helps=helps))
    diagnosis = dataclasses.replace(diagnosis, prescriptions=(given,))
    if helps:
        assert given.standing.en == "tried: loss 2.31 → 1.9 ± 0.02 after 20 steps; untreated 2.3"
    for lang in LANGS:
        text = "\n".join(line.text for line in lines(diagnosis, lang))
        for part in (given.standing, TRIED.also, TRIED.cost):
            assert part.of(lang)[1:] in text
            assert part.of(lang) in page([diagnosis], lang)
        assert "candidate, not tried" not in text
    (entry,) = document([diagnosis])["cases"][0]["prescriptions"]
    assert (entry["tried"]["helps"], entry["tried"]["loss_treated"], entry["tried"]["steps"]) == (helps, 1.9, 20)
    json.dumps(entry, allow_nan=False)


@pytest.mark.parametrize(
    ("code", "changes"),
    {
        "SS014": {"site": {"expects": "causal"}, "sees_ahead": 1.0, "ahead": 0.4},
        "SS015": {"padding": 0.1},
        "SS016": {"blind": 0.5},
        "SS017": {"cut": 1.0},
        "SS018": {"q_trains": 1.0},
        "SS019": {"k_norm": 8.0},
        "SS020": {"twice": 1.0},
        "SS021": {"same_keys": 1.0},
    }.items(),
)
def test_a_fault_is_repaired_before_anything_else_is_tried(code, changes):
    """A temperature for heads of a leaking mask would treat what the leak has done."""
    (given,) = diagnose(starving(history(**changes, **per_head(1, STUCK)), 1)).prescriptions
    assert given.remedy == "repair"
    assert {head.head for head in given.heads} == {0, 1, 2, 3}
    assert given.what == CHECKS[code].remedy
    tried = {"SS014": ["mask"], "SS015": ["mask"], "SS018": ["unfreeze"]}
    assert [way.remedy for way in given.candidates] == tried.get(code, [])
