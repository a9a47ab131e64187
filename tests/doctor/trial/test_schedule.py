"""Trials that a run makes by itself: when they are due, what they cost, and that the run stays the same."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import softscope as ss
from softscope import tasks
from softscope.doctor import Record, follow, read_record
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.trial import head_trial
from softscope.doctor.trial.schedule import Schedule


class Asked(torch.nn.Module):
    """Recall as one argument: keys, values, queries and targets, (batch, 4, pairs)."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tasks.RecallModel(256, vocabulary=16, options=tasks.AttentionOptions(scale=1.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.model(*x[:, :3].unbind(dim=1))


def batch(generator: torch.Generator, many: int = 16) -> Tensor:
    made = tasks.recall_batch(many, pairs=16, generator=generator)
    return torch.stack([made.keys, made.values, made.query, made.target], dim=1)


def loss(logits: Tensor, x: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), x[:, 3].flatten())


def run(schedule: bool, path: Any = None) -> tuple[Any, Any]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    held_out = batch(torch.Generator().manual_seed(1), many=64)
    model = Asked()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    with Record(path) if path else contextlib.nullcontext() as record, ss.probe(model, every=1) as scope:
        if record is not None:
            follow(scope, record)
        if schedule:
            scope.try_regularly(held_out, loss=loss, every=4, share=100.0)
        for _ in range(10):
            x = batch(generator)
            optimizer.zero_grad()
            value = loss(model(x), x)
            value.backward()
            optimizer.step()
            scope.step(loss=value.item())
    return copy.deepcopy(model.state_dict()), scope


def test_a_run_tries_by_itself_and_stays_the_same_bit_for_bit() -> None:
    (plain, before), (tried, after) = run(False), run(True)
    assert all(torch.equal(plain[name], tried[name]) for name in plain)
    assert not before.trials
    (trial,) = after.trials.values()
    assert trial.verdict == "starving"
    assert trial.step == 9  # at 0 nothing was suspected yet, at 4 and 8 it was; counted after the step
    assert diagnose(before.history()).states["suspected"] == 1
    assert diagnose(after.history()).states["starving"] == 1


def test_a_record_knows_what_its_run_tried(tmp_path: Any) -> None:
    run(True, tmp_path / "run.db")
    assert diagnose(read_record(tmp_path / "run.db")).states["starving"] == 1


def test_trials_together_take_no_more_than_their_share() -> None:
    schedule = Schedule(None, None, every=1, share=0.01)
    done, now = 0, 0.0
    for step in range(1000):
        now += 1.0
        if schedule.due(step, now):
            done += 1
            schedule.spent += 2.0
            now += 2.0
    assert schedule.spent <= 0.01 * now + 2.0
    assert 4 <= done <= 6


@pytest.mark.parametrize(("wrong", "word"), [({"every": 0}, "every"), ({"share": 0.0}, "share")])
def test_bad_arguments_get_a_sentence(wrong: dict[str, Any], word: str) -> None:
    with ss.probe(torch.nn.MultiheadAttention(8, 2)) as scope, pytest.raises(ValueError, match=word):
        scope.try_regularly(torch.ones(4), **wrong)


def test_a_trial_that_fails_does_not_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_trial, "suspects", lambda _: {"MultiheadAttention": [0]})
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    with ss.probe(model, every=1) as scope:
        scope.try_regularly("no batch", every=1)
        for step in range(3):
            model(x, x, x)
            with pytest.warns(RuntimeWarning, match="the run goes on") if not step else contextlib.nullcontext():
                scope.step()
    assert len(scope.history().snapshots) == 3


def test_without_a_suspect_the_model_is_not_called() -> None:
    found = head_trial.try_heads(torch.nn.Linear(1, 1), "no batch", {})
    assert (dict(found), found.passes) == ({}, 0.0)
