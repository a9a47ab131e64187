"""A loop of your own, plain or with Accelerate: one line attaches the probe and records."""

import pytest
import torch
from torch.nn import functional

import softscope
from doctor.record.scopes import FakeScope
from softscope import tasks
from softscope.doctor import HuggingFaceCallback, Record, follow, read_record, watch_training
from softscope.doctor.record import news


def model():
    torch.manual_seed(0)
    return tasks.SmallTransformer(vocabulary=9, length=16, d=16, heads=2, layers=1)


def loss_of(logits, batch):
    return functional.cross_entropy(logits.flatten(0, -2), batch.target.flatten(), ignore_index=tasks.IGNORED)


def batches(many):
    generator = torch.Generator().manual_seed(0)
    return [tasks.copy_batch(4, length=8, vocabulary=8, generator=generator) for _ in range(many)]


def trained(model, mark, many=3):
    """Train for a few steps; after each, validate."""
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches(many):
        loss = loss_of(model(*batch.inputs), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mark(loss=loss)
        with torch.no_grad():
            model(*batch.inputs)


def readings(path):
    return [(s.step, s.loss, s.readings["sharpness"].tolist()) for s in read_record(path).snapshots]


def test_it_does_in_one_line_what_takes_three(tmp_path):
    one, three = tmp_path / "one.db", tmp_path / "three.db"
    with watch_training(mine := model(), one, every=1, first_step=7) as watched:
        trained(mine, watched.step)
    with Record(three) as record, softscope.probe(mine := model(), every=1) as scope:
        follow(scope, record, first_step=7)
        trained(mine, scope.step)
    assert readings(one) == readings(three)
    assert [step for step, *_ in readings(one)] == [7, 8, 9]


def test_an_exception_leaves_nothing_attached(tmp_path):
    mine = model()

    def failing():
        with watch_training(mine, tmp_path / "run.db", every=1) as watched:
            trained(mine, watched.step, many=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in mine.modules())
    assert news(tmp_path / "run.db").ended == "ZeroDivisionError"
    assert len(readings(tmp_path / "run.db")) == 1


def test_a_step_after_the_end_is_ignored(tmp_path):
    with watch_training(None, tmp_path / "run.db", probe=FakeScope) as watched:
        watched.step()
    watched.step()
    assert len(readings(tmp_path / "run.db")) == 1


@pytest.mark.parametrize(
    ("option", "told"), [({"severity": "bad"}, "severity must be one of"), ({"group": "none"}, "but got 'none'; pass")]
)
def test_an_option_that_makes_no_sense_is_refused_before_training(option, told):
    with pytest.raises(ValueError, match=told):
        HuggingFaceCallback(**option)


def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="needs accelerate: pip install accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    mine = model()
    mine, optimizer = accelerator.prepare(mine, torch.optim.AdamW(mine.parameters()))
    losses = []
    with watch_training(mine, tmp_path / "run.db", every=1) as watched:
        for batch in batches(6):
            with accelerator.accumulate(mine):
                loss = loss_of(mine(*batch.inputs), batch)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                losses.append(loss.item())
                watched.step(loss=loss)
    assert [(step, loss) for step, loss, _ in readings(tmp_path / "run.db")] == list(enumerate(losses))
    assert len(losses) == 3
    assert [site.name for site in read_record(tmp_path / "run.db").sites] == ["blocks.0.attention"]
