"""A state needs rows enough, and one row more or less does not turn it over."""

import math

import numpy as np
import pytest

from doctor.judge.histories import RESTING, STUCK, history, per_head
from softscope.doctor.judge.history_view import Head, HistoryView
from softscope.doctor.judge.thresholds import ENOUGH_ROWS


def state(found, head=1):
    return HistoryView(found).states[Head(0, head)]


def test_one_row_of_five_off_the_sink_does_not_turn_resting_into_suspected():
    """Five blocked rows in each reading; in the last one, one of them reads something else."""
    rows = {"blocked": 5 / 32, "judged": 32.0, "blocked_mass": [0.99, 0.99, 0.99, 0.99, 0.8]}
    assert state(history(**per_head(1, STUCK | rows))).state == "resting"


def test_five_rows_alone_decide_nothing():
    found = state(history(steps=[0, 1, 2], **per_head(1, STUCK | {"blocked": 5 / 32, "judged": 32.0})))
    assert found.state == "unjudged"
    assert "only 15 blocked rows were read" in found.why.en
    assert "只读到 15 行" in found.why.zh


def test_older_readings_are_asked_until_there_are_rows_enough():
    few = {"blocked": 5 / 32, "judged": 32.0}
    assert state(history(**per_head(1, STUCK | few))).state == "suspected"  # five readings have 25 rows
    fewer = few | {"blocked": [0.0, 0.0, 5 / 32, 5 / 32, 5 / 32]}
    assert state(history(**per_head(1, STUCK | fewer))).state == "unjudged"  # it was not blocked before


@pytest.mark.parametrize("rows", [32.0, 3200.0])
def test_a_share_that_is_clearly_below_is_not_resting(rows):
    assert state(history(**per_head(1, STUCK | {"judged": rows, "blocked_mass": 0.7}))).state == "suspected"
    assert state(history(**per_head(1, RESTING | {"judged": rows}))).state == "resting"


def test_judgements_of_a_sample_seldom_differ():
    """A resting head of which one blocked row in thirty reads something else: 200 runs with samples of 32 rows."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        blocked = rng.binomial(32, 0.2, 5).clip(4)
        away = rng.binomial(blocked, 1 / 30)
        readings = {"blocked": blocked / 32, "judged": 32.0, "blocked_mass": 1.0 - away / blocked}
        found.append(state(history(**per_head(1, STUCK | readings))).state)
    assert found.count("resting") >= 199


def test_records_without_counts_are_judged_as_before():
    assert state(history(**per_head(1, STUCK | {"blocked": 0.11}))).state == "suspected"


def test_no_rows_with_loss():
    found = state(history(**per_head(1, {"blocked": math.nan, "judged": 0.0, "demand": 0.0})))
    assert found.state == "unjudged"
    assert "none of the sampled rows carries loss" in found.why.en
    assert ENOUGH_ROWS.value == 20
