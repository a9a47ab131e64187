"""Live states and events use what trials show, and the record gets each trial at the next reading."""

import dataclasses

import numpy as np
import pytest

from doctor.events.played import Played
from doctor.judge.histories import STARVES, STUCK, USEFUL, history, per_head
from softscope.doctor.events import Watch, watch
from softscope.doctor.judge.history_view import Head
from softscope.doctor.record import Record, news, read_record
from softscope.doctor.sinks import follow

PLACE = "layers.0.attention", 0


class Tried(Played):
    """Plays back a history and tries its first head after the reading of a step."""

    def __init__(self, found, results):
        super().__init__(found)
        self.trials, self.results = {}, results

    def play(self):
        for snapshot in self.found.snapshots:
            for callback in self.callbacks:
                callback(snapshot)
            if snapshot.step in self.results:
                self.trials[PLACE] = dataclasses.replace(self.results[snapshot.step], step=snapshot.step)


def states(found, results):
    """The state of the first head after every reading."""
    scope, judged, got = Tried(found, results), Watch(None), []
    scope.on_snapshot(lambda s: got.append(judged.look(found.sites, s, scope.trials).view.states[Head(0, 0)].state))
    scope.play()
    return got


def test_a_suspected_head_that_a_trial_finds_starving_is_a_finding():
    scope, got = Tried(history(steps=range(10), **per_head(0, STUCK)), {4: STARVES}), []
    watch(scope, got.append, severity="tip")
    scope.play()
    told = [(e.step, e.kind, e.code, e.severity) for e in got if e.code in ("SS001", "SS013")]
    assert told == [(2, "appeared", "SS013", "tip"), (5, "appeared", "SS001", "finding"), (7, "ended", "SS013", "tip")]


def test_a_trial_still_counts_when_its_readings_are_long_forgotten():
    blocked = np.where(np.arange(400) < 41, 0.0, 0.9)  # in the middle of a group
    for result, wanted in ((USEFUL, "useful"), (STARVES, "starving")):
        found = history(heads=1, steps=range(400), **per_head(0, STUCK) | {"blocked": {0: blocked}})
        got = states(found, {43: result})
        assert got[43] == "suspected"
        assert set(got[44:]) == {wanted}


def test_a_trial_from_before_a_recovery_never_counts_again():
    blocked = np.full(500, 0.9)
    blocked[141] = 0.0
    found = history(heads=1, steps=range(500), **per_head(0, STUCK) | {"blocked": {0: blocked}})
    got = states(found, {50: STARVES})
    assert set(got[51:141]) == {"starving"}
    assert set(got[144:]) == {"suspected"}


@pytest.mark.parametrize("first", [0, 700])
def test_the_record_gets_a_trial_at_the_next_reading_and_counts_steps_as_it_does(tmp_path, first):
    scope = Tried(history(steps=range(20), **per_head(0, STUCK)), {10: STARVES})
    with Record(tmp_path / "run.db") as record:
        events = []
        follow(scope, record, first_step=first, on_event=events.append)
        scope.play()
        (kept,) = read_record(tmp_path / "run.db").facts["trials"]
        assert (kept["site"], kept["head"], kept["step"]) == (*PLACE, first + 10)
        assert news(tmp_path / "run.db").facts["trials"] == [kept]
    assert [(event.step, event.code) for event in events] == [(first + 11, "SS001")]
