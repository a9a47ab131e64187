"""The digest of a run that is judged while it goes on: bounded, and it says what the whole history says."""

import math

import numpy as np
import pytest

from doctor.judge.histories import GRADIENT, RESTING, RIGHT, STUCK, history, made_site, per_head
from softscope.doctor.judge import checks
from softscope.doctor.judge.history_view import HistoryView
from softscope.doctor.read.snapshot import History, Snapshot
from softscope.doctor.recent import EARLIER, LAST, Recent

LONG = 1000  # readings, far more than are kept
TIMES = np.arange(LONG)
NOISE = np.random.default_rng(0).standard_normal(LONG)
# Of the whole run, or of its end; every one of them depends on what was read long ago.
RUNS = {
    "healthy": {},
    "starves from the start": per_head(0, STUCK),
    "starves lately": per_head(0, STUCK) | {"blocked": {0: np.where(TIMES < 900, 0.0, 0.9)}},
    "rests": per_head(0, RESTING),
    "right": per_head(0, RIGHT),
    # It has learned everything: the advantage falls to 0.3, and only the demand of its first steps tells.
    "satisfied": per_head(0, STUCK)
    | {"advantage": {0: 0.3}, "advantage_error": {0: 0.01}, "demand": {0: np.where(TIMES < 30, 1.0, 1e-4)}},
    "uniform all the time": {"sharpness": {0: 0.001}},
    "uniform now, sharp long ago": {"sharpness": {0: np.where(TIMES == 77, 0.5, 0.001)}},
    "uniform now, sharp not so long ago": {"sharpness": {0: np.where(TIMES == 777, 0.5, 0.001)}},
    "grows without end": {"max_logit": {0: 5 + 0.08 * TIMES + NOISE}},
    "grew, and has a plateau": {"max_logit": {0: 60 * (1 - np.exp(-TIMES / 60)) + 2 * NOISE}},
    "overflowed once": {"site": {"dtype": "float16"}, "lse_min": {0: np.where(TIMES == 123, -100.0, 2.0)}},
    "swings, and rises just now": {"max_logit": {0: 50 - 10 * np.cos(np.pi * (TIMES - LONG + 64) / 64)}},
    # Over forty readings: nothing about it is sudden.
    "sharpens slowly": per_head(0, STUCK) | {"sharpness": {0: np.interp(TIMES, [400, 440], [0.2, 0.95])}},
    "falls suddenly at the end": per_head(0, STUCK) | {"sharpness": {0: np.where(TIMES < 980, 0.2, 0.95)}},
}


def digest(found):
    recent = Recent()
    for snapshot in found.snapshots:
        recent.add(found.sites, snapshot)
    return recent.history()


def verdict(found):
    view = HistoryView(found)
    fired = {(r.code, r.kind, r.heads) for r in checks.run(view) if r.kind in checks.SEVERITIES}
    return {head: state.state for head, state in view.states.items()}, fired


@pytest.mark.parametrize("run", RUNS)
def test_it_says_what_the_whole_history_says(run):
    found = history(heads=4, steps=range(0, 10 * LONG, 10), **RUNS[run])
    assert verdict(digest(found)) == verdict(found)


def test_the_runs_differ_from_a_healthy_one():
    healthy = verdict(history(steps=range(0, 10 * LONG, 10)))
    said = {run: verdict(history(steps=range(0, 10 * LONG, 10), **changes)) for run, changes in RUNS.items()}
    for run in ("swings, and rises just now", "grew, and has a plateau", "uniform now, sharp not so long ago"):
        assert said.pop(run) == healthy
    assert [run for run in said if said[run] == healthy] == ["healthy"]


def test_a_window_of_the_last_readings_would_be_wrong():
    found = history(steps=range(0, 10 * LONG, 10), **RUNS["satisfied"])
    window = History(found.sites, found.snapshots[-LAST:])
    assert verdict(window) != verdict(found)


@pytest.mark.parametrize("many", [1, LAST, LAST + EARLIER])
def test_a_short_run_is_kept_as_it_is(many):
    found = history(steps=range(many), **per_head(0, STUCK))
    assert all(a is b for a, b in zip(digest(found).snapshots, found.snapshots, strict=True))


def test_it_never_grows_beyond_its_bound():
    recent, sizes = Recent(), []
    found = history(heads=1, steps=range(3000))
    for snapshot in found.snapshots:
        recent.add(found.sites, snapshot)
        if snapshot.step % 8 == 7:
            sizes.append(len(recent.history().snapshots))
    assert max(sizes) == LAST + EARLIER
    assert min(sizes[100:]) > LAST


def test_the_last_readings_are_kept_as_they_are_but_for_the_largest_logit():
    found = history(steps=range(LONG), max_logit={0: TIMES})
    last = digest(found).snapshots[-LAST:]
    for kept, given in zip(last, found.snapshots[-LAST:], strict=True):
        assert kept.step == given.step
        for name, reading in given.readings.items():
            if name != "max_logit":
                np.testing.assert_array_equal(kept.readings[name], reading)
    assert last[-1].readings["max_logit"][0, 0] == LONG - 1
    steps = HistoryView(digest(found)).curve("max_logit", HistoryView(found).heads[0])[0]
    gaps = list(np.diff(steps[:-1]))
    assert gaps.count(max(gaps)) >= len(gaps) - 2  # as dense early as late, but for one group that both parts share


def test_a_site_found_later_and_one_read_without_a_loss():
    recent = Recent()
    one, two = made_site(0, 2), made_site(1, 4)
    recent.add([one], Snapshot(0, 0.0, None, {"peak": np.ones((1, 2), np.float32)}))
    recent.add([one, two], Snapshot(1, 0.0, 1.0, {"peak": np.ones((2, 4), np.float32), "blocked": np.ones((2, 4))}))
    found = recent.history()
    assert found.series("peak").shape == (2, 2, 4)
    assert math.isnan(found.series("peak")[0, 1, 0])
    assert math.isnan(found.series("blocked")[0, 0, 0])


def test_a_reading_without_a_loss_does_not_erase_a_groups():
    """Evaluation passes are read, too: their snapshots lack what needs a loss."""
    found = history(steps=range(LONG), **per_head(0, STUCK))
    without = [
        snapshot if i % 2 == 0 else Snapshot(
            snapshot.step, 0.0, None, {n: x for n, x in snapshot.readings.items() if n not in GRADIENT}
        )
        for i, snapshot in enumerate(found.snapshots)
    ]  # fmt: skip
    mixed = History(found.sites, tuple(without))
    assert verdict(digest(mixed)) == verdict(mixed)


def test_a_resumed_run_replaces_what_it_repeats():
    recent = Recent()
    found = history(steps=range(200))
    for snapshot in (*found.snapshots, *found.snapshots[90:120]):
        recent.add(found.sites, snapshot)
    steps = [snapshot.step for snapshot in recent.history().snapshots]
    assert steps == sorted(set(steps))
    assert steps[-1] == 119


def test_another_model_is_another_run():
    recent = Recent()
    for heads in (4, 2):
        found = history(heads=heads, steps=range(100, 110) if heads == 4 else range(200, 205))
        for snapshot in found.snapshots:
            recent.add(found.sites, snapshot)
    assert [snapshot.step for snapshot in recent.history().snapshots] == list(range(200, 205))
