"""Lightning's trainer itself, from both packages that have it."""

import inspect
import os
import types

import pytest
import torch
from torch.nn import functional

from doctor.record.scopes import FakeScope
from softscope import tasks
from softscope.doctor import LightningCallback, read_record
from softscope.doctor.record import news

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
# What Lightning itself warns of is not ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("error::softscope.doctor.RecordWarning")
]  # fmt: skip


@pytest.fixture(params=PACKAGES)
def lightning(request):
    return package(request.param)


def package(name):
    return pytest.importorskip(name, reason="needs lightning: pip install lightning")


def module(lightning, fails_at=None):
    """A small transformer that learns to copy; `losses` and `validated` tell what was done with it."""

    class Copies(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = tasks.SmallTransformer(vocabulary=9, length=16, d=16, heads=2, layers=1)
            self.losses, self.validated = [], 0

        def loss(self, batch):
            tokens, target = batch
            return functional.cross_entropy(self.model(tokens).flatten(0, 1), target.flatten(), ignore_index=-100)

        def training_step(self, batch, index):
            if index == fails_at:
                raise ZeroDivisionError
            loss = self.loss(batch)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, _):
            self.validated += 1
            self.loss(batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=3e-3)

    torch.manual_seed(0)
    return Copies()


def batches(many):
    made = tasks.copy_batch(4 * many, length=8, vocabulary=8, generator=torch.Generator().manual_seed(0))
    data = torch.utils.data.TensorDataset(*made.inputs, made.target)
    return torch.utils.data.DataLoader(data, batch_size=4)


def trainer(lightning, folder, *callbacks, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    return lightning.Trainer(
        **{"accelerator": "cpu", "default_root_dir": folder, "enable_checkpointing": False, **quiet, **options},
        callbacks=[*callbacks],
    )


def attached(model):
    return any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def steps(path):
    return [(s.step, s.loss) for s in read_record(path).snapshots]


def test_two_epochs_with_a_validation_after_each(lightning, tmp_path):
    model, path = module(lightning), tmp_path / "run.db"
    trainer(lightning, tmp_path, LightningCallback(path, every=1), max_epochs=2).fit(model, batches(3), batches(2))
    assert model.validated == 2 + 2 * 2  # two before training
    assert steps(path) == list(enumerate(model.losses))
    assert len(model.losses) == 6
    assert [site.name for site in read_record(path).sites] == ["model.blocks.0.attention"]
    assert read_record(path).series("blocked").shape[0] == 6
    assert not attached(model)
    assert news(path).ended == ""


def test_a_step_is_one_of_the_optimizer_with_the_mean_loss_of_its_batches(lightning, tmp_path):
    model, path = module(lightning), tmp_path / "run.db"
    options = {"max_epochs": 2, "accumulate_grad_batches": 2}
    trainer(lightning, tmp_path, LightningCallback(path, every=1), **options).fit(model, batches(3))
    a, b, c, d, e, f = model.losses
    expected = [(a + b) / 2, c, (d + e) / 2, f]  # an epoch's last step has what is left
    assert [step for step, _ in steps(path)] == [0, 1, 2, 3]
    assert [loss for _, loss in steps(path)] == pytest.approx(expected)


def test_a_resumed_training_counts_on(lightning, tmp_path):
    path, saved = tmp_path / "run.db", tmp_path / "saved.ckpt"
    first = trainer(lightning, tmp_path, LightningCallback(path, every=1), max_steps=2)
    first.fit(module(lightning), batches(4))
    first.save_checkpoint(saved)
    again = trainer(lightning, tmp_path, LightningCallback(path, every=1), max_steps=6)
    again.fit(module(lightning), batches(4), ckpt_path=saved)
    assert [step for step, _ in steps(path)] == [0, 1, 2, 3, 4, 5]


def test_an_exception_leaves_nothing_attached(lightning, tmp_path):
    model, path = module(lightning, fails_at=2), tmp_path / "run.db"
    callback = LightningCallback(path, every=1)
    with pytest.raises(ZeroDivisionError):
        trainer(lightning, tmp_path, callback, max_epochs=1).fit(model, batches(4))
    assert not attached(model)
    assert callback.scope is None
    assert news(path).ended == "ZeroDivisionError"
    assert [step for step, _ in steps(path)] == [0, 1]


def test_a_trainer_may_have_two_and_a_checkpoint_knows_neither(lightning, tmp_path):
    two = [LightningCallback(tmp_path / f"{name}.db", every=1) for name in "ab"]
    one = trainer(lightning, tmp_path, *two, max_steps=2)
    one.fit(module(lightning), batches(2))
    one.save_checkpoint(tmp_path / "saved.ckpt")
    assert steps(tmp_path / "a.db") == steps(tmp_path / "b.db") != []
    assert torch.load(tmp_path / "saved.ckpt", weights_only=False)["callbacks"] == {}


@pytest.mark.parametrize("name", PACKAGES)
def test_it_has_every_method_that_a_callback_has(name):
    theirs = package(name).Callback
    wanted = [method for method, _ in inspect.getmembers(theirs, inspect.isfunction) if not method.startswith("_")]
    assert len(wanted) > 30
    assert all(callable(getattr(LightningCallback(), method)) for method in wanted)
    with pytest.raises(AttributeError, match="no attribute 'trainer'"):
        LightningCallback().trainer  # noqa: B018


def test_outputs_without_a_loss(tmp_path):
    callback = LightningCallback(tmp_path / "run.db", probe=FakeScope)
    state = types.SimpleNamespace(global_step=0, is_global_zero=True, accumulate_grad_batches=1)
    callback.on_train_start(state, None)
    for output in (None, {}, {"loss": None}, torch.ones(2), {"loss": "none"}):
        state.global_step += 1
        callback.on_train_batch_end(state, None, output, None, 0)
    callback.on_train_end(state, None)
    assert [loss for _, loss in steps(tmp_path / "run.db")] == [None, None, None, 1.0, None]


def test_a_process_that_is_not_the_first_does_nothing(tmp_path):
    callback = LightningCallback(tmp_path / "run.db", probe=FakeScope)
    state = types.SimpleNamespace(global_step=0, is_global_zero=False, accumulate_grad_batches=1)
    callback.on_train_start(state, None)
    assert callback.scope is None
    assert os.listdir(tmp_path) == []
