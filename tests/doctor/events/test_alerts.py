"""Alerts and events on dashboards. TensorBoard is real, W&B a stand-in with its rules."""

# ruff: noqa: ARG002 - the stand-ins have all the arguments that the real ones have

import math

import pytest
import torch

from doctor.events.played import GREAT, play
from doctor.judge.histories import RESTING, history, per_head
from doctor.record.runs import one_warning
from softscope.doctor.callbacks import HuggingFaceCallback
from softscope.doctor.record import Record
from softscope.doctor.sinks import Log, TensorBoard


class WandbRun:
    """As `wandb.Run`: a title has less than 64 characters, and the same one is sent once a minute."""

    def __init__(self):
        self.logged, self.sent = [], []

    def log(self, data, step=None, commit=None):
        assert all(math.isfinite(value) for value in data.values())
        assert not self.logged or step >= self.logged[-1][0]
        self.logged.append((step, data))

    def alert(self, title, text, level=None, wait_duration=None):
        if level not in ("INFO", "WARN", "ERROR"):
            raise ValueError("level must be one of 'INFO', 'WARN', or 'ERROR'")
        assert len(title) < 64
        if title not in [alert[0] for alert in self.sent]:
            self.sent.append((title, text, level))


def test_weights_and_biases_gets_one_alert_for_each_check():
    run = WandbRun()
    play(history(sites=2, steps=range(7), max_logit=[6, GREAT, GREAT, GREAT, 6, 6, 6]), Log(run.log, alert=run.alert))
    appeared, ended = run.sent
    assert appeared[0] == "step 1 SS003 Large or growing logits: 8 places"
    assert appeared[2] == "WARN"
    assert appeared[1].splitlines()[0].startswith("layers.0.attention head 0: its largest logit is 2000")
    assert (ended[0].split()[:3], ended[2]) == (["step", "6", "SS003"], "INFO")
    assert [step for step, _ in run.logged] == list(range(7))


def test_alerts_in_chinese():
    run = WandbRun()
    play(history(steps=range(2), max_logit={1: GREAT}), Log(run.log, run.alert, lang="zh"))
    assert run.sent[0][0] == "第 0 步 SS003 分数过大或持续增长: layers.0.attention 头 1"


def test_resting_heads_send_no_alert_unless_asked():
    run, asked = WandbRun(), WandbRun()
    found = history(**per_head(0, RESTING))
    play(found, Log(run.log, run.alert))
    play(found, Log(asked.log, asked.alert), severity="informative")
    assert run.sent == []
    assert [alert[2] for alert in asked.sent] == ["INFO"]


def test_an_alert_that_fails_is_one_warning_and_logging_goes_on():
    def failing(**_):
        raise ConnectionError("no route to host")

    run = WandbRun()
    with one_warning(r"the alert failed \(ConnectionError: no route to host\): training goes on"):
        play(history(steps=range(8), max_logit=[6, GREAT, 6, 6, 6, GREAT, 6, 6]), Log(run.log, alert=failing))
    assert len(run.logged) == 8


class Own:
    """A sink of the user's."""

    wants_alerts = True

    def __init__(self):
        self.seen, self.events = {}, []

    def sites(self, sites):
        pass

    def add(self, snapshot):
        pass

    def unseen(self, modules):
        pass

    def note(self, facts):
        pass

    def states(self, states):
        self.seen = {head.head: judged.state for head, judged in states.items()}

    def alert(self, events):
        self.events += events
        raise KeyError("a bug in the user's code")


def test_a_sink_of_ones_own_gets_states_and_events_and_may_fail():
    own, run = Own(), WandbRun()
    with one_warning(r"an alert failed \(KeyError"):
        play(history(steps=range(6), max_logit={1: GREAT}, **per_head(0, RESTING)), own, Log(run.log))
    assert own.seen == {0: "resting", 1: "learning", 2: "learning", 3: "learning"}
    assert [event.code for event in own.events] == ["SS003"]
    assert len(run.logged) == 6


def test_judging_that_fails_leaves_the_readings(monkeypatch):
    monkeypatch.setattr("softscope.doctor.events.HistoryView", lambda *_: 1 / 0)
    run = WandbRun()
    with one_warning("judging the run failed"):
        play(history(), Log(run.log, run.alert))
    assert len(run.logged) == 5
    assert "softscope/layers.0.attention/blocked" in run.logged[-1][1]
    assert not any("/state/" in name for name in run.logged[-1][1])


def test_nothing_is_judged_for_a_record_alone(monkeypatch, tmp_path):
    monkeypatch.setattr("softscope.doctor.events.Watch.look", lambda *_: 1 / 0)
    with Record(tmp_path / "run.db") as record:
        play(history(), record)
        assert record.last_step == 40


def test_tensorboard_shows_events_as_text(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="needs tensorboard: pip install tensorboard")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        play(history(steps=range(5), max_logit={1: GREAT}), TensorBoard(writer), first_step=100)
    read = accumulator.EventAccumulator(str(tmp_path)).Reload()
    (event,) = read.Tensors("softscope/events/text_summary")
    assert event.step == 100
    text = event.tensor_proto.string_val[0].decode()
    assert text.startswith("**step 100 SS003 Large or growing logits: …ers.0.attention head 1**")
    assert [x.value for x in read.Scalars("softscope/heads/learning")] == [4.0] * 5


def test_a_writer_without_text_gets_numbers_only():
    class Writer:
        got = ()

        def add_scalar(self, name, value, step):
            self.got += ((name, value, step),)

    writer = Writer()
    board = TensorBoard(writer)
    assert not board.wants_alerts
    play(history(steps=range(3), max_logit={1: GREAT}), board)
    assert ("softscope/heads/learning", 4.0, 2) in writer.got


def test_hugging_faces_trainer(tmp_path):
    """The trainer is real; its model has logits in the thousands from the start."""
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    pytest.importorskip("accelerate", reason="needs accelerate: pip install accelerate")
    torch.manual_seed(0)
    size = {"vocab_size": 9, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
    settings = transformers.GPT2Config(**size, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM")
    model = transformers.GPT2LMHeadModel(settings)
    model.transformer.h[1].attn.c_attn.weight.data[:, :64] *= 1000  # W_Q and W_K
    tokens = torch.randint(0, 9, (64, 16))
    data = [{"input_ids": row, "labels": row} for row in tokens]
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=4, per_device_train_batch_size=8, save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True, logging_steps=2,
    )  # fmt: skip
    run, got = WandbRun(), []

    def failing(event):
        got.append(event)
        raise ZeroDivisionError

    with (
        one_warning(r"on_event failed \(ZeroDivisionError\): training goes on"),
        HuggingFaceCallback(every=1, sinks=[Log(run.log, run.alert)], on_event=failing) as doctor,
    ):
        trained = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[doctor]).train()
    assert trained.global_step == 4
    assert {event.site for event in got if event.code == "SS003"} == {"transformer.h.1.attn"}
    assert any("SS003" in title for title, *_ in run.sent)
    assert [step for step, _ in run.logged] == [0, 1, 2, 3]
    assert sum(run.logged[-1][1][f"softscope/heads/{state}"] for state in ("learning", "unjudged")) <= 8
    with pytest.raises(ValueError, match="severity must be one of"):
        HuggingFaceCallback(severity="high")
