"""Events: what appears, changes and ends, once each, and nothing that ever disturbs a run."""

import pytest
import torch

import softscope
from doctor.events.played import Played, events
from doctor.judge.histories import STUCK, history, per_head
from doctor.record.runs import one_warning
from softscope._text import Text
from softscope.doctor import events as module
from softscope.doctor.alerts import TITLE, alerts
from softscope.doctor.events import Event, Tracker, watch
from softscope.doctor.recent import EARLIER, LAST

GREAT, HIGH, LOW = 2000.0, 500.0, 6.0  # the largest logit: a finding, a tip, nothing (SS003)


def steps(values, **options):
    """The events of a run whose head 1 has these largest logits."""
    found = history(steps=range(len(values)), max_logit={1: values})
    return [(step, kind) for step, kind, code, head in events(found, **options) if (code, head) == ("SS003", 1)]


def test_a_finding_appears_at_once_and_ends_after_three_readings_without_it():
    assert steps([LOW, GREAT, GREAT, LOW, LOW, LOW, LOW]) == [(1, "appeared"), (5, "ended")]


def test_one_that_comes_and_goes_is_one_event():
    assert steps([LOW, GREAT, LOW, GREAT, LOW, LOW, GREAT] + [GREAT, LOW] * 20) == [(1, "appeared")]


def test_a_change_of_severity_is_an_event_and_settles_down():
    assert steps([HIGH, HIGH, GREAT, HIGH, GREAT, HIGH, HIGH, HIGH], severity="tip") == [
        (0, "appeared"),
        (2, "changed"),
        (7, "changed"),
    ]


def test_only_what_is_severe_enough():
    values = [HIGH, GREAT, HIGH, HIGH, HIGH]
    assert steps(values) == [(1, "appeared"), (4, "ended")]
    assert steps(values, severity="tip") == [(0, "appeared"), (1, "changed"), (4, "changed")]
    with pytest.raises(ValueError, match="severity must be one of finding, tip, informative, but got 'high'"):
        Tracker("high")


def test_what_is_muted_is_no_event():
    assert steps([GREAT] * 3, mute=["SS003"]) == []
    assert steps([GREAT] * 3, mute=["SS003:encoder.*"]) == [(0, "appeared")]


def test_nan_is_a_finding_and_ends_no_other():
    found = history(steps=range(8), max_logit={1: GREAT}, sharpness=[0.3] * 3 + [float("nan")] * 5)
    got = events(found)
    assert [event for event in got if event[1] == "ended"] == []
    assert (3, "appeared", "SS012", None) in got


def test_an_event_names_its_place_and_says_why():
    got = []
    scope = Played(history(sites=2, steps=range(3), max_logit={(1, 2): GREAT}))
    watch(scope, got.append)
    scope.play()
    (event,) = [event for event in got if event.code == "SS003"]
    assert (event.site, event.head, event.severity) == ("layers.1.attention", 2, "finding")
    assert "2000" in event.says.en
    assert "2000" in event.says.zh
    assert event.place == Text(zh="layers.1.attention 头 2", en="layers.1.attention head 2")
    assert event.title.en == "Large or growing logits"


def test_a_head_that_gets_stuck_is_an_event():
    stuck = {name: {1: [value] * 6} for name, value in per_head(1, STUCK).items() for value in value.values()}
    stuck["blocked"] = {1: [0.0] * 3 + [0.9] * 3}
    found = [event for event in events(history(steps=range(6), **stuck), severity="tip") if event[3] == 1]
    assert {(step, kind) for step, kind, code, _ in found if code == "SS013"} == {(5, "appeared")}


def test_a_callback_that_fails_is_one_warning_and_is_called_again():
    got = []

    def failing(event):
        got.append(event.head)
        raise ConnectionError("no route to host")

    scope = Played(history(steps=range(2), max_logit=GREAT))
    watch(scope, failing)
    with one_warning(r"the callback for events failed \(ConnectionError: no route to host\): training goes on"):
        scope.play()
    assert got == [0, 1, 2, 3]


def test_a_mistake_in_judging_is_one_warning(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(module.checks, "run", broken)
    scope, got = Played(history(steps=range(5), max_logit=GREAT)), []
    watch(scope, got.append)
    with one_warning(r"judging the run failed \(ZeroDivisionError\): training goes on"):
        scope.play()
    assert got == []


def test_the_cost_of_a_reading_does_not_grow_with_the_run(monkeypatch):
    judged = []
    run = module.checks.run

    def counted(view, **options):
        judged.append(len(view.history.snapshots))
        return run(view, **options)

    monkeypatch.setattr(module.checks, "run", counted)
    events(history(heads=1, steps=range(400)))
    assert len(judged) == 400
    assert max(judged) == LAST + EARLIER


def train(watched):
    """The weights after a few steps, to the bit."""
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(16, 2, 16, dropout=0.1, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    got = []
    with softscope.probe(model, every=1) as scope:
        if watched:
            watch(scope, got.append, severity="informative")
            watch(scope, lambda _: 1 / 0)
        for _ in range(6):
            loss = model(torch.randn(4, 9, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss=loss)
    return [parameter.clone() for parameter in model.parameters()], torch.rand(4)


def test_a_watched_run_computes_the_same_bits():
    (bare, after), (seen, later) = train(False), train(True)
    assert all(torch.equal(a, b) for a, b in zip(bare, seen, strict=True))
    assert torch.equal(after, later)


def test_alerts_are_few_and_their_titles_short_and_different():
    says = Text(zh="坏了", en="it is broken")
    long = "model.decoder.layers.11.a_module_with_a_very_long_name.self_attention"
    got = [Event(20, "appeared", "SS003", long, head, says, "finding") for head in range(48)]
    for lang in ("en", "zh"):
        (alert,) = alerts(got, lang)
        assert alert.level == "WARN"
        assert len(alert.text.splitlines()) == 11
        titles = {alerts([event], lang)[0].title for event in got}
        assert len(titles) == 48
        assert max(map(len, titles)) <= TITLE < 64
    assert alerts([Event(20, "ended", "SS003", "a", 0, says, "finding")])[0].level == "INFO"
    assert alerts([Event(20, "appeared", "SS010", "a", 0, says, "tip")])[0].level == "INFO"
    assert "\x1b" not in alerts([Event(20, "ended", "SS003", "a\x1b[31m", 0, says, "tip")])[0].title
