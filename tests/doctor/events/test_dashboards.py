"""What a dashboard can tell: the state of each head, not only how sharp it is."""

import pathlib
import re

import pytest

from doctor.events.played import Played
from doctor.judge.histories import RESTING, STUCK, history, per_head
from softscope.doctor.judge.states import STATES
from softscope.doctor.sinks import Log, follow


def logged(found, **options):
    """What a logger gets of every snapshot."""
    got = []
    scope = Played(found)
    follow(scope, Log(lambda values, step: got.append((step, values))), **options)
    scope.play()
    return got


def test_a_resting_head_does_not_look_like_a_starving_one():
    rests, stuck = (logged(history(**per_head(0, readings)))[-1][1] for readings in (RESTING, STUCK))
    site = "softscope/layers.0.attention/state"
    assert [name for name in STATES if rests.get(f"{site}/{name}") == 1] == ["resting"]
    assert [name for name in STATES if stuck.get(f"{site}/{name}") == 1] == ["suspected"]


def test_states_count_every_head_of_a_site_and_of_the_run():
    got = logged(history(sites=2, **per_head((1, 2), RESTING)))
    for _, values in got:
        of_sites = {name: value for name, value in values.items() if "/state/" in name}
        for site in ("layers.0.attention", "layers.1.attention"):
            assert sum(value for name, value in of_sites.items() if f"/{site}/" in name) == 4
        totals = {
            name.rpartition("/")[2]: value for name, value in values.items() if name.startswith("softscope/heads/")
        }
        assert tuple(totals) == STATES
        assert sum(totals.values()) == 8
    assert got[-1][1]["softscope/heads/resting"] == 1


def test_a_state_that_no_head_has_any_more_is_zero_and_not_missing():
    recovers = history(steps=range(0, 100, 10), blocked={0: [0.9] * 5 + [0.0] * 5}, blocked_mass={0: 0.97})
    got = [values for _, values in logged(recovers)]
    assert "softscope/layers.0.attention/state/resting" not in got[0]
    assert got[4]["softscope/layers.0.attention/state/resting"] == 1
    assert got[-1]["softscope/layers.0.attention/state/resting"] == 0


def test_without_a_loss_nothing_is_judged():
    values = logged(history(loss=False))[-1][1]
    assert values["softscope/heads/unjudged"] == 4
    assert values["softscope/heads/learning"] == 0


def test_the_advantage_is_logged_and_its_worst_is_the_smallest():
    values = logged(history(advantage={0: -0.5}))[-1][1]
    assert values["softscope/layers.0.attention/advantage_worst"] == pytest.approx(-0.5)
    assert values["softscope/layers.0.attention/advantage"] == pytest.approx((-0.5 + 3 * 0.1) / 4, abs=1e-6)


def test_the_page_says_how_many_there_are():
    for page in ("doctor.md", "doctor.zh-CN.md"):
        text = (pathlib.Path(__file__).parents[3] / "docs" / page).read_text("utf-8")
        (each,) = re.findall(r"^\| `softscope/SITE/state/STATE` \|.* (\d+) ", text, re.MULTILINE)
        (total,) = re.findall(r"^\| `softscope/heads/STATE` \|.*?(\d+)[^\d]*$", text, re.MULTILINE)
        assert int(each) == int(total) == len(STATES)
