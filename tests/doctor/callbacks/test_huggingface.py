"""Hugging Face's trainer: the probe is attached and removed; steps and losses come from the trainer."""

import inspect
import os
import types

import pytest
import torch

from doctor.record.scopes import FakeScope
from softscope.doctor.callbacks import HuggingFaceCallback
from softscope.doctor.record import Record, news, read_record


def state(step=0, first=True):
    return types.SimpleNamespace(global_step=step, is_world_process_zero=first)


def test_a_whole_training(tmp_path):
    callback = HuggingFaceCallback(tmp_path / "run.db", every=5, probe=FakeScope)
    callback.on_init_end(None, None, None)
    callback.on_train_begin(None, state(), None, model="the model", optimizer=None)
    scope = callback.scope
    assert (scope.model, scope.options, scope.attached) == ("the model", {"every": 5}, True)
    callback.on_step_end(None, state(1), None, model=None)
    callback.on_log(None, state(1), None, logs={"loss": "1.5", "epoch": 0.1})
    callback.on_evaluate(None, state(1), None, metrics={})
    callback.on_log(None, state(1), None, logs={"eval_loss": 9.0})
    callback.on_step_end(None, state(2), None, model=None)
    callback.on_train_end(None, state(2), None)
    assert (scope.attached, callback.scope) == (False, None)
    callback.on_step_end(None, state(3), None)  # after the end: ignored
    assert [(s.step, s.loss) for s in read_record(tmp_path / "run.db").snapshots] == [(0, None), (1, 1.5)]
    assert news(tmp_path / "run.db").ended == ""
    assert read_record(tmp_path / "run.db").facts["model"] == "str"


def test_the_probe_takes_what_the_callback_passes_on():
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with HuggingFaceCallback(every=1, max_rows=3) as callback:
        callback.on_train_begin(None, state(), None, model=model)
        model(*3 * [torch.ones(1, 40, 8)])
        callback.on_step_end()
        assert callback.scope.history().facts["max_rows"] == 3


def test_a_resumed_training_counts_on(tmp_path):
    callback = HuggingFaceCallback(tmp_path / "run.db", probe=FakeScope)
    for start in (0, 2):
        callback.on_train_begin(None, state(start), None, model=None)
        callback.on_step_end()
        callback.on_step_end()
        callback.on_train_end()
    assert [s.step for s in read_record(tmp_path / "run.db").snapshots] == [0, 1, 2, 3]


@pytest.mark.parametrize(("own", "parts", "wanted"), [(0.5, 1, 0.5), (None, 1, 2.0), (0.5, 4, 2.0)])
def test_the_loss_is_the_models_own_unless_it_is_a_part_of_one(tmp_path, own, parts, wanted):
    class Scope(FakeScope):
        def step(self):
            super().step(loss=own)

    callback = HuggingFaceCallback(tmp_path / "run.db", probe=Scope)
    arguments = types.SimpleNamespace(gradient_accumulation_steps=parts)
    callback.on_train_begin(arguments, state(), None, model=None)
    callback.on_log(arguments, state(), None, logs={"loss": 2.0})
    callback.on_step_end()
    callback.on_train_end()
    assert [s.loss for s in read_record(tmp_path / "run.db").snapshots] == [wanted]


def test_only_the_first_rank_is_read(tmp_path):
    callback = HuggingFaceCallback(tmp_path / "run.db", probe=FakeScope)
    callback.on_train_begin(None, state(first=False), None, model=None)
    callback.on_step_end()
    callback.on_train_end()
    assert os.listdir(tmp_path) == []


def test_an_exception_removes_the_probe_through_the_context(tmp_path):
    def failing():
        with HuggingFaceCallback(tmp_path / "run.db", probe=FakeScope) as callback:
            callback.on_train_begin(None, state(), None, model=None)
            callback.on_step_end()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not FakeScope.made[-1].attached
    assert news(tmp_path / "run.db").ended == "ZeroDivisionError"


def test_a_probe_that_does_not_attach_leaves_nothing_open(tmp_path):
    def refusing(_):
        raise ValueError("no attention found")

    callback = HuggingFaceCallback(tmp_path / "run.db", probe=refusing)
    with pytest.raises(ValueError, match="no attention found"):
        callback.on_train_begin(None, state(), None, model=None)
    assert news(tmp_path / "run.db").ended == "ValueError"


def test_a_record_that_was_given_stays_open(tmp_path):
    with Record(tmp_path / "run.db") as record:
        callback = HuggingFaceCallback(record, probe=FakeScope)
        callback.on_train_begin(None, state(), None, model=None)
        callback.on_step_end()
        callback.on_train_end()
        assert record.last_step == 0


def test_it_answers_every_event_that_there_is():
    trainer = pytest.importorskip(
        "transformers.trainer_callback", reason="needs transformers: pip install transformers"
    )
    events = [name for name, _ in inspect.getmembers(trainer.TrainerCallback) if name.startswith("on_")]
    assert len(events) > 10
    assert all(callable(getattr(HuggingFaceCallback(), event)) for event in events)
    with pytest.raises(AttributeError, match="no attribute 'state'"):
        HuggingFaceCallback().state  # noqa: B018


@pytest.fixture
def trainer(tmp_path):
    """Makes a real trainer: four batches in an epoch, two for each step, an evaluation after each epoch."""
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    pytest.importorskip("accelerate", reason="needs accelerate: pip install accelerate")

    def make(callback, **options):
        torch.manual_seed(0)
        size = {"vocab_size": 9, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
        settings = transformers.GPT2Config(**size, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM")
        data = [{"input_ids": row, "labels": row} for row in torch.randint(0, 9, (8, 16))]
        arguments = transformers.TrainingArguments(
            str(tmp_path / "trainer"), num_train_epochs=2, per_device_train_batch_size=2, use_cpu=True,
            gradient_accumulation_steps=2, eval_strategy="epoch", save_strategy="epoch", report_to="none",
            disable_tqdm=True, logging_steps=1, **options,
        )  # fmt: skip
        model = transformers.GPT2LMHeadModel(settings)
        return transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data, callbacks=[callback])

    return make


def test_two_epochs_and_a_resumed_one(tmp_path, trainer):
    with HuggingFaceCallback(tmp_path / "run.db", every=1) as callback:
        trainer(callback, max_steps=2).train()
    assert [s.step for s in read_record(tmp_path / "run.db").snapshots] == [0, 1]
    with HuggingFaceCallback(tmp_path / "run.db", every=1) as callback:
        again = trainer(callback)
        again.train(resume_from_checkpoint=str(tmp_path / "trainer" / "checkpoint-2"))
    found = read_record(tmp_path / "run.db").snapshots
    assert [s.step for s in found] == [0, 1, 2, 3]
    losses = [entry["loss"] for entry in again.state.log_history if "loss" in entry]
    assert found[-1].loss == pytest.approx(losses[2], rel=1e-3)  # known when the last step ends
    assert len(losses) == 4


def test_a_training_that_fails_leaves_nothing_attached(tmp_path, trainer):
    def fail(*_, **__):
        raise ZeroDivisionError

    callback = HuggingFaceCallback(tmp_path / "run.db", every=1)
    failing = trainer(callback)
    failing.evaluate = fail
    with pytest.raises(ZeroDivisionError), callback:
        failing.train()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in failing.model.modules())
    assert news(tmp_path / "run.db").ended == "ZeroDivisionError"
    assert len(read_record(tmp_path / "run.db").snapshots) == 2
