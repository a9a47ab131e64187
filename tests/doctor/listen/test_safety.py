"""The probe always removes itself, whatever happens, and never brings a run down."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import softscope as ss
import softscope._attention
from softscope.doctor import scope
from softscope.doctor.judge.diagnosis import diagnose
from softscope.doctor.listen import patches
from softscope.doctor.listen.reasons import FAILED, Reason

from ..patients import KINDS, Projected, fused, pytest_transformers, small_llama, stack, tokens


def laid() -> list[Any]:
    """Everything the probe replaces while it listens."""
    found = [functional.scaled_dot_product_attention, functional.softmax, torch.softmax, torch.bmm, torch.baddbmm]
    found += [functional.multi_head_attention_forward, torch._transformer_encoder_layer_fwd]
    found += [softscope._attention.attend, "softmax" in vars(torch.Tensor), dict(nn.Module.__dict__)]
    return found


def test_nothing_is_left_behind() -> None:
    before = laid()
    model = stack("fused")
    inside = []
    model.layers[0].mix = lambda q, k, v: (inside.append(functional.scaled_dot_product_attention), fused(q, k, v))[1]
    with ss.probe(model, every=2):
        model(tokens()).mean().backward()
        assert laid() == before  # nothing stays in place between passes either
    assert inside[0] is not before[0]
    assert laid() == before
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("where", ["inside the model", "between passes"])
def test_after_an_error(where: str) -> None:
    before = laid()
    model = stack("fused")

    def fail(*_: Any) -> Tensor:
        raise KeyError("the model's own")

    if where == "inside the model":
        model.layers[1].mix = fail
    found = ss.probe(model)

    def run() -> None:
        with found:
            model(tokens()).mean().backward()
            fail()

    with pytest.raises(KeyError, match="the model's own"):
        run()
    assert laid() == before
    assert not model._forward_hooks
    assert len(found.history().snapshots) == 1  # earlier readings stay


def test_the_registry_is_as_it_was() -> None:
    pytest_transformers()
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama import modeling_llama

    model = small_llama("eager")
    before = {name: ALL_ATTENTION_FUNCTIONS[name] for name in ALL_ATTENTION_FUNCTIONS}
    eager = modeling_llama.eager_attention_forward
    with ss.probe(model):
        model(torch.zeros(1, 8, dtype=torch.long))
    assert before == {name: ALL_ATTENTION_FUNCTIONS[name] for name in ALL_ATTENTION_FUNCTIONS}
    assert modeling_llama.eager_attention_forward is eager


@pytest.mark.parametrize("part", ["read", "keep_rows"])
def test_our_own_failure_warns_once_and_the_run_goes_on(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(scope, part, fail)
    model = stack("fused")
    found = ss.probe(model)

    def run() -> None:
        with found:
            for _ in range(2):
                model(tokens()).mean().backward()

    with pytest.warns(RuntimeWarning, match="ZeroDivisionError: ours; the run goes on") as told:
        run()
    assert len(told) == 1
    reasons = dict(found.history().unseen)
    assert reasons.keys() == {"layers.0", "layers.1"}
    assert reasons["layers.0"] == Reason(FAILED, ("ZeroDivisionError: ours",))


def test_our_own_failure_where_warnings_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "read", lambda *_: 1 / 0)
    model = stack("fused")
    with ss.probe(model):
        model(tokens()).mean().backward()  # pytest turns warnings into errors
    assert model.layers[0].qkv.weight.grad is not None


def test_a_callback_that_fails() -> None:
    model = stack("fused")
    found = ss.probe(model)
    found.on_snapshot(lambda _: {}["no such thing"])

    def run() -> None:
        with found:
            model(tokens())

    with pytest.warns(RuntimeWarning, match="no such thing"):
        run()
    assert len(found.history().snapshots) == 1


def test_two_probes_at_once() -> None:
    before = laid()
    model = stack("fused")
    with ss.probe(model) as outer, ss.probe(model, max_rows=None) as inner:
        model(tokens()).mean().backward()
    assert laid() == before
    for found in (outer, inner):
        assert found.history().snapshots[0].has_loss
    assert not patches._listeners


def test_another_model_in_between_is_not_heard() -> None:
    model, other = stack("fused"), stack("fused")
    with ss.probe(model) as found:
        other(tokens())
    assert not found.history().sites


def test_a_second_call_in_one_module_has_its_own_name() -> None:
    model = Projected(lambda q, k, v: fused(q, k, v) + fused(k, q, v))
    with ss.probe(model) as found:
        for _ in range(2):
            model(tokens())
    assert [site.name for site in found.history().sites] == ["Projected", "Projected#2"]
    assert len(found.history().snapshots) == 2


class Reentrant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = KINDS["fused"][0]()

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.layer, x.requires_grad_(), use_reentrant=True)


def test_reentrant_checkpointing_has_no_gradient_and_says_so() -> None:
    model = Reentrant()
    with ss.probe(model) as found:
        model(tokens()).mean().backward()
    history = found.history()
    assert len(history.snapshots) == 1
    assert not history.snapshots[0].has_loss
    assert "use_reentrant=False" in str(dict(history.unseen)["layer"])


def test_what_was_not_seen_is_listed() -> None:
    class StrangeAttention(nn.Linear):
        pass

    model = nn.Sequential(StrangeAttention(16, 16), stack("fused"))
    with ss.probe(model) as found:
        model(tokens())
    ((name, why),) = found.history().unseen
    assert (name, str(why)) == ("0", "its name says attention, but no call was seen in it")
    with ss.probe(model) as found:
        pass
    assert "no forward pass" in str(dict(found.history().unseen)["0"])


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, but got int;"):
        ss.probe(3)
    with pytest.raises(ValueError, match="every must be at least 1"):
        ss.probe(stack("fused"), every=0)
    with pytest.raises(ValueError, match="rows must be at least 1"):
        ss.probe(stack("fused"), max_rows=0)


def test_a_model_trained_in_parallel(tmp_path: Any) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch was built without torch.distributed")
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(stack("fused"))
        for probed in (model, model.module):
            with ss.probe(probed) as found:
                model(tokens()).mean().backward()
            assert [site.name for site in found.history().sites] == ["layers.0", "layers.1"]
            assert found.history().snapshots[0].has_loss
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:softscope.probe")
def test_losses_that_are_no_numbers_do_not_break_the_run():
    """The run continues as it would have; the readings are judged, and NaN is not mistaken for starvation."""
    from softscope.doctor.judge.diagnosis import diagnose

    model, x = stack("multihead"), tokens()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model, every=1) as scope:
        for step in range(6):
            loss = model(x).pow(2).mean() * (float("nan") if step >= 2 else 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss=loss)
    diagnosis = diagnose(scope.history())
    assert diagnosis.states["starving"] == 0
    assert diagnosis.verdict.en


def saved(model: nn.Module) -> bytes:
    file = io.BytesIO()
    torch.save(model, file)
    return file.getvalue()


def test_a_probed_model_can_be_saved_and_copied_and_its_copies_know_no_probe() -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 8, 0.0, batch_first=True))
    x = torch.randn(2, 5, 8)
    with ss.probe(model, every=1) as found:
        model(x).mean().backward()
        copies = [copy.deepcopy(model), torch.load(io.BytesIO(saved(model)), weights_only=False)]
        copies.append(copy.deepcopy(copies[0]))
        for other in copies:
            assert torch.equal(other(x), model(x))
            assert b"softscope" not in saved(other)
            assert not any("softscope" in type(hook).__module__ for hook in other._forward_hooks.values())
        assert b"softscope" not in saved(model)
    for other in copies:
        assert torch.equal(other(x), model(x))
    assert len(found.history().snapshots) == 1, "the passes of the copies are not the model's"


def test_an_empty_batch_is_passed_by() -> None:
    model = stack("fused")
    with ss.probe(model, every=1) as found:
        for size in (0, 2):
            model(torch.randn(size, *tokens().shape[1:])).sum().backward()
            found.step()
    assert [snapshot.step for snapshot in found.history().snapshots] == [1]
    assert not found.history().unseen


def test_a_run_whose_loss_goes_nan_is_not_called_healthy() -> None:
    model = stack("fused")
    with ss.probe(model, every=1) as found:
        for step in range(5):
            loss = model(tokens() * (float("nan") if step >= 3 else 1.0)).mean()
            loss.backward()
            found.step(loss=loss)
    diagnosis = diagnose(found.history())
    assert diagnosis.verdict.en.startswith("Since step 3 the loss or the readings have been NaN")
    assert diagnosis.fails("finding")
    assert diagnosis.states["unjudged"] == len(diagnosis.view.heads)


@pytest.mark.parametrize("loss", ["x", torch.ones(0), torch.ones(3), None, [1.0]])
def test_a_loss_that_is_no_number_ends_the_step_all_the_same(loss: Any) -> None:
    model = stack("fused")
    with ss.probe(model, every=1) as found:
        for _ in range(2):
            model(tokens()).mean().backward()
            found.step(loss=loss)
    losses = [snapshot.loss for snapshot in found.history().snapshots]
    assert losses == ([1.0, 1.0] if isinstance(loss, Tensor) and loss.numel() else [None, None])


def test_a_model_called_around_its_probe_is_named() -> None:
    model = stack("fused")
    with ss.probe(model) as found:
        pass
    ((name, why),) = found.history().unseen
    assert name == type(model).__name__
    assert "no forward pass of the model was seen" in str(why)


def test_a_site_that_cannot_be_read_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no gradient comes, sites are read when the step ends: one failure must not lose the whole snapshot."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            return self.b(*3 * [self.a(x, x, x)[0][:, :4]])[0]  # type: ignore[no-any-return]

    reader = scope.read
    monkeypatch.setattr(scope, "read", lambda kept, grad: 1 / 0 if kept.observed.n == 5 else reader(kept, grad))
    with ss.probe(Two(), every=1) as probe:
        probe.model(torch.ones(1, 5, 8, requires_grad=True))
        with pytest.warns(RuntimeWarning, match="a is no longer read"):
            probe.step()
    history = probe.history()
    assert [site.name for site in history.sites] == ["a", "b"]
    assert not np.isnan(history.snapshots[0].readings["sharpness"][1]).any()
    assert dict(history.unseen)["a"].code == FAILED
