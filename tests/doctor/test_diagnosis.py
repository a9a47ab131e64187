"""The verdict in plain words, and the remedy that fits the findings."""

import dataclasses
import re

import numpy as np
import pytest

from doctor.judge.histories import RESTING, RIGHT, STARVES, STUCK, history, per_head, starving, without
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.read.head_trial import as_facts
from softscope.doctor.treat.plan import plans

CASES = {
    "healthy": (history(), "No findings. Of 4 heads, 4 can still learn.", []),
    "right": (history(**per_head(1, RIGHT)), "No findings. Of 4 heads, 1 reads the right keys, 3 can still learn.", []),
    "resting": (history(**per_head(1, RESTING)), "No findings. Of 4 heads, 3 can still learn, 1 rests on a sink.", []),
    "positional": (
        history(**per_head(1, STUCK | {"blocked_offset_mass": 0.95})),
        "No findings. Of 4 heads, 3 can still learn, 1 reads by position.",
        [],
    ),
    "one": (history(heads=1, blocked=0.9, advantage=3.0), "No findings. Its only head reads the right keys.", []),
    "starving": (
        starving(history(**per_head(1, STUCK)), 1),
        "1 of 4 heads is starving: layers.0.attention head 1. A trial showed it: the loss does not need it as it is",
        ["temperature"],
    ),
    "suspected": (
        history(**per_head(1, STUCK)),
        "No findings. 1 of 4 heads is suspected: layers.0.attention head 1. It looks stuck, but only a trial can tell",
        ["temperature"],
    ),
    "starving and suspected": (
        starving(history(**per_head(1, STUCK) | {"blocked": {1: 0.9, 2: 0.9}}), 1),
        "1 of 4 heads is starving: layers.0.attention head 1.",
        ["temperature", "temperature"],
    ),
    "several": (
        starving(history(blocked=0.9), 0, 1, 2, 3),
        "4 of 4 heads are starving: layers.0.attention head 0,",
        ["temperature"],
    ),
    "unscaled": (
        starving(history(site={"scale": 1.0}, blocked=0.9), 0, 1, 2, 3),
        "4 of 4 heads are starving",
        ["scale"],
    ),
    "empty": (history(q_norm={1: 0.0}), "No findings. Of 4 heads, 3 can still learn, 1 is empty.", []),
    "uniform": (
        history(steps=range(0, 1000, 100), sharpness={1: 0.001}),
        "No findings. Of 4 heads, 3 can still learn, 1 stays uniform.",
        [],
    ),
    "outlier": (history(q_norm={2: 240.0}), "1 finding in layers.0.attention head 2.", ["repair"]),
    "outlier that starves": (
        starving(history(**per_head(2, STUCK) | {"q_norm": {2: 240.0}}), 2),
        "1 of 4 heads is starving",
        ["repair"],
    ),
    "growing": (history(max_logit={1: 2000.0}), "1 finding in layers.0.attention head 1.", ["qk-norm"]),
    "half": (history(site={"dtype": "float16"}, lse_min={1: -99.0}), "1 finding", ["dtype"]),
    "cut off": (history(demand={1: 0.0}), "1 finding", ["repair"]),
    "no loss": (history(loss=False), "No findings. Without a loss, the doctor cannot tell whether 4 heads", []),
    "no loss, outlier": (
        history(loss=False, q_norm={2: 240.0}),
        "1 finding in layers.0.attention head 2. Without",
        ["repair"],
    ),
    "NaN": (
        history(sharpness=[0.3, 0.3, np.nan, np.nan, np.nan]),
        "Since step 20 the loss or the readings have been",
        [],
    ),
    "NaN in one layer": (history(sites=2, sharpness={(1, h): np.nan for h in range(4)}), "1 finding in layers.1", []),
    "one token": (
        without(history(count=1.0), "blocked"),
        "No findings. The doctor cannot tell whether 4 heads are starving: there are too few readings",
        [],
    ),
    "no attention": (history(sites=0, heads=0), "No attention was found", []),
    "no readings": (history(steps=[]), "There are no readings yet", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_verdict_and_remedy(name):
    found, words, remedies = CASES[name]
    diagnosis = diagnose(found)
    assert diagnosis.verdict.en.startswith(words)
    assert [given.remedy for given in diagnosis.prescriptions] == remedies
    assert re.search(r"[\u4e00-\u9fff]", diagnosis.verdict.zh)
    assert re.findall(r"\d+", diagnosis.verdict.zh.replace("唯一", "1")) or name in (
        "no attention",
        "no readings",
        "one",
    )
    for given in diagnosis.prescriptions:
        for text in (given.what, given.why, given.expect, given.evidence):
            assert re.search(r"[\u4e00-\u9fff]", text.zh)
            assert not re.search(r"[\u4e00-\u9fff]", text.en)
        assert given.heads


def test_healthy_is_never_said_without_a_loss():
    said = diagnose(history(loss=False)).verdict
    assert "does not mean they are healthy" in said.en
    assert "不等于健康" in said.zh


def test_the_remedies_are_those_that_were_measured_to_help():
    (given,) = diagnose(starving(history(site={"scale": 1.0}, blocked=0.9), 0)).prescriptions
    assert "softscope experiment remedies" in given.evidence.en
    for failed in ("soft cap", "sink", "scalable softmax", "RMS QK-norm", "entmax"):
        assert failed in given.does_not.en
        assert failed not in given.evidence.en


def test_nothing_is_prescribed_for_notes_and_tips():
    diagnosis = diagnose(history(site={"fused": False}, max_logit=150.0, **per_head(1, RESTING)))
    assert diagnosis.counts["tip"] == 5
    assert diagnosis.counts["informative"] >= 1
    assert plans(diagnosis.view, diagnosis.outcomes) == []


def test_fails_at_a_severity():
    cases = {
        "finding": starving(history(**per_head(1, STUCK)), 1),
        "tip": history(site={"fused": False}),
        "informative": history(**per_head(1, RESTING)),
        "": history(),
    }
    levels = ("finding", "tip", "informative")
    for name, found in cases.items():
        diagnosis = diagnose(found)
        failing = [level for level in levels if diagnosis.fails(level)]
        assert failing == (list(levels[levels.index(name) :]) if name else [])
    assert not diagnose(cases["tip"], mute=["SS010"]).fails("tip")
    suspected = diagnose(history(**per_head(1, STUCK)))
    assert (suspected.fails("finding"), suspected.fails("tip")) == (False, True)


def test_a_trial_from_before_the_head_was_blocked_says_nothing():
    found = history(**per_head(1, STUCK | {"blocked": [0.0, 0.0, 0.9, 0.9, 0.9]}))
    for step, state in ((10, "suspected"), (20, "starving"), (None, "starving")):
        trial = dataclasses.replace(STARVES, step=step)
        facts = {"trials": as_facts({(found.sites[0].name, 1): trial})}
        assert diagnose(dataclasses.replace(found, facts=facts)).states[state] == 1


@pytest.mark.parametrize("kept", [None, 7, [7], [{}], [{"site": "a", "head": "x"}], {"site": "a"}])
def test_facts_that_hold_no_trial_are_left_out(kept):
    found = dataclasses.replace(history(**per_head(1, STUCK)), facts={"trials": kept})
    assert diagnose(found).states["suspected"] == 1


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_a_finding_even_if_the_readings_look_well(loss):
    found = history()
    *first, last = found.snapshots
    found = dataclasses.replace(found, snapshots=(*first, dataclasses.replace(last, loss=loss)))
    assert diagnose(found).verdict.en.startswith("Since step 40 the loss or the readings have been NaN")
    assert list(diagnose(found).of("finding")) == ["SS012"]
    assert not diagnose(history()).fails("finding")
