"""Each state from readings that mean it, at the edges of the thresholds; no state without support in the readings."""

import math

import pytest

from doctor.judge.histories import RESTING, RIGHT, STUCK, history, per_head
from softscope.doctor.judge.history_view import Head, HistoryView
from softscope.doctor.judge.states import MEANINGS, NAMES, STATES


def state(found, head=1):
    return HistoryView(found).states[Head(0, head)]


@pytest.mark.parametrize(
    ("readings", "wanted"),
    [
        ({}, "learning"),
        (STUCK, "suspected"),
        (RIGHT, "right"),
        (RESTING, "resting"),
        (RESTING | {"advantage": 3.0}, "resting"),
        (STUCK | {"advantage": -0.5, "advantage_error": 0.2}, "suspected"),
        (STUCK | {"advantage": 1.3, "advantage_error": 0.3}, "right"),
        (STUCK | {"advantage": 0.6, "advantage_error": 0.3}, "suspected"),
        (STUCK | {"blocked_offset_mass": 0.95}, "positional"),
        (STUCK | {"blocked_offset_mass": 0.95, "advantage": 3.0}, "positional"),
        (STUCK | {"blocked_offset_mass": 0.85}, "suspected"),
        (RESTING | {"blocked_offset_mass": 0.95}, "resting"),
        (STUCK | {"blocked": 0.1}, "learning"),
        (STUCK | {"blocked": 0.11}, "suspected"),
        (STUCK | {"blocked_mass": 0.89}, "suspected"),
        (STUCK | {"blocked": [0.9, 0.9, 0.9, 0.9, 0.0]}, "learning"),  # it got out
        (STUCK | {"blocked": [0.0, 0.0, 0.0, 0.9, 0.9]}, "learning"),  # not long enough
        (STUCK | {"blocked": [0.0, 0.0, 0.9, 0.9, 0.9]}, "suspected"),
        (STUCK | {"blocked_mass": [0.97, 0.97, 0.97, 0.5, 0.97]}, "suspected"),  # a sink would stay put
        (STUCK | {"blocked_mass": math.nan}, "suspected"),
        (STUCK | {"advantage": 0.4, "demand": [1.0, 0.5, 0.005, 0.004, 0.003]}, "right"),  # no demand left
        (STUCK | {"advantage": 0.4, "demand": [1.0, 0.5, 0.1, 0.1, 0.1]}, "suspected"),
        (STUCK | {"advantage": -0.4, "demand": [1.0, 0.5, 0.005, 0.004, 0.003]}, "suspected"),
    ],
)
def test_each_state(readings, wanted):
    found = history(**per_head(1, readings))
    assert state(found).state == wanted
    assert state(found, 0).state == "learning"


def test_without_a_loss_nothing_is_judged():
    found = state(history(loss=False))
    assert found.state == "unjudged"
    assert "without a loss" in found.why.en
    assert "没有损失" in found.why.zh


def test_too_few_readings():
    assert state(history(steps=[0, 1], **per_head(1, STUCK))).state == "unjudged"
    assert state(history(steps=[0, 1], **per_head(1, STUCK | {"blocked": [0.0, 0.9]}))).state == "learning"
    assert state(history(steps=[0])).state == "learning"
    assert state(history(steps=[])).state == "unjudged"


def test_gaps_are_passed_over():
    assert state(history(**per_head(1, STUCK | {"blocked": [0.9, math.nan, 0.9, 0.9, math.nan]}))).state == "suspected"


def test_since_when():
    assert state(history(**per_head(1, STUCK))).since == 0
    assert state(history(**per_head(1, STUCK | {"blocked": [0.9, 0.0, 0.9, 0.9, 0.9]}))).since == 20


def test_an_advantage_without_an_error():
    one = STUCK | {"advantage_error": math.nan}
    assert state(history(**per_head(1, one | {"advantage": [0, 0, 2.9, 3.0, 3.1]}))).state == "right"
    assert state(history(**per_head(1, one | {"advantage": [-3, 3, -3.0, 3.0, 3.1]}))).state == "suspected"


def test_errors_are_pooled_over_the_readings():
    found = state(history(**per_head(1, STUCK | {"advantage": 1.0, "advantage_error": 0.3})))
    assert found.error == pytest.approx(0.3 / math.sqrt(3), rel=1e-5)
    assert found.state == "right"  # 1 − 2·0.17 ≥ 0.5; one reading alone would not show it


def test_what_is_open_asks_older_readings():
    noisy = STUCK | {"advantage": [1.4, 1.2, 0.9, 0.8, 0.9], "advantage_error": 0.4}
    found = state(history(**per_head(1, noisy)))
    assert found.state == "right"  # the last three alone: 0.87 ± 0.23
    assert found.advantage == pytest.approx(0.95, rel=1e-5)  # it takes four


def test_states_have_words():
    assert set(NAMES) == set(MEANINGS) == set(STATES)
