"""Which weights of q, k and v train, whether the gradient arrives, and what a model's class says of its mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import softscope as ss
from softscope.doctor.listen import batch_inputs
from softscope.doctor.listen.projections import projections
from softscope.doctor.listen.trained_codes import ALONE, NO_GRADIENT, NO_OPTIMIZER, READINGS, TRAINS, WITH_ALL
from softscope.tasks import SmallTransformer


class Teacher(nn.Module):
    """A student beside a teacher that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.student, self.teacher = (SmallTransformer(8, length=12, d=16, heads=2, layers=1) for _ in range(2))
        self.teacher.requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = self.teacher(tokens)
        found: Tensor = self.student(tokens) - wanted
        return found


def codes(model: nn.Module, optimizers: list[Any] | None = None, **reading: Any) -> dict[str, dict[str, float]]:
    """Train three steps and return the last readings by site."""
    tokens = torch.randint(8, (4, 12), generator=torch.Generator().manual_seed(0))
    optimizers = (
        [torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)] if optimizers is None else optimizers
    )
    with ss.probe(model, **reading) as scope:
        for _ in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            model(tokens).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
    history = scope.history()
    last = history.snapshots[-1].readings
    wanted = (*READINGS.values(), "cut")
    return {
        site.name: {name: float(last[name][i, 0]) for name in wanted if name in last}
        for i, site in enumerate(history.sites)
    }


def model() -> SmallTransformer:
    return SmallTransformer(8, length=12, d=16, heads=2, layers=2)


FIRST, SECOND = "blocks.0.attention", "blocks.1.attention"
FINE = {"q_trains": TRAINS, "k_trains": TRAINS, "v_trains": TRAINS, "cut": 0.0}


def test_all_train() -> None:
    assert codes(model()) == {FIRST: FINE, SECOND: FINE}


def test_one_of_them_needs_no_gradient() -> None:
    made = model()
    made.blocks[0].attention.w_q.requires_grad_(False)
    assert codes(made) == {FIRST: FINE | {"q_trains": ALONE}, SECOND: FINE}


def test_a_module_that_is_frozen_as_a_whole_is_meant() -> None:
    made = model()
    made.blocks[0].attention.requires_grad_(False)
    found = codes(made)[FIRST]
    assert math.isnan(found.pop("cut")), "nothing is meant to arrive"
    assert found == dict.fromkeys(READINGS.values(), WITH_ALL)


def test_a_detached_q_gets_none() -> None:
    made = model()
    made.blocks[1].attention.w_q.register_forward_hook(lambda _, __, out: out.detach())
    assert codes(made)[SECOND] == FINE | {"q_trains": NO_GRADIENT}


def test_a_parameter_that_was_forgotten() -> None:
    made = model()
    lost = {id(p) for p in made.blocks[1].attention.w_v.parameters()}
    found = codes(made, [torch.optim.SGD([p for p in made.parameters() if id(p) not in lost], 0.1)])
    assert found == {FIRST: FINE, SECOND: FINE | {"v_trains": NO_OPTIMIZER}}


def test_two_optimizers_share_a_model() -> None:
    made = model()
    parameters = list(made.parameters())
    assert codes(made, [torch.optim.SGD(parameters[::2], 0.1), torch.optim.Adam(parameters[1::2])])[FIRST] == FINE


def test_one_optimizer_for_each_parameter_steps_within_the_backward_pass() -> None:
    made = model()
    each = {p: torch.optim.SGD([p], 0.1) for p in made.parameters()}

    def step(p: nn.Parameter) -> None:
        each[p].step()
        each[p].zero_grad()

    for p in made.parameters():
        p.register_post_accumulate_grad_hook(step)
    assert {name for found in codes(made, []).values() for name, value in found.items() if value > 0.0} == set()


def test_without_an_optimizer_nothing_is_said() -> None:
    assert all(found.keys() <= {"cut"} for found in codes(model(), []).values())


@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_a_cut_graph(how: str) -> None:
    made = model()
    inner: Callable[..., Any] = made.blocks[0].attention.forward
    if how == "detach":
        made.blocks[0].attention.register_forward_hook(lambda _, __, out: out.detach())
    else:
        made.blocks[0].attention.forward = torch.no_grad()(inner)  # type: ignore[method-assign]
    found = codes(made)
    assert (found[FIRST]["cut"], found[SECOND]["cut"]) == (1.0, 0.0)


def test_a_teacher_is_not_cut_off() -> None:
    found = codes(Teacher())
    assert "cut" not in found["teacher.blocks.0.attention"] or found["teacher.blocks.0.attention"]["cut"] != 1.0
    assert found["student.blocks.0.attention"]["cut"] == 0.0


def test_forward_passes_alone_cut_nothing() -> None:
    made = model()
    with ss.probe(made) as scope:
        made(torch.zeros(2, 12, dtype=torch.long))
    assert "cut" not in scope.history().snapshots[0].readings


def test_projections_by_name() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    assert projections(Odd()) == {}
    packed = projections(nn.MultiheadAttention(8, 2))
    grad = torch.arange(24.0)[:, None].expand(24, 8)
    assert [float(packed[role][0].of(grad)[0, 0]) for role in "qkv"] == [0.0, 8.0, 16.0]  # type: ignore[index]


class Wrapped(nn.Module):
    """A model of transformers inside the user's own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, **given: Tensor) -> Any:
        return self.inner(**given).logits


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_the_models_class_says_of_its_mask(wrapped: bool) -> None:
    transformers = pytest.importorskip("transformers")
    small = {
        "vocab_size": 9,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    made = {
        "causal": transformers.LlamaForCausalLM(transformers.LlamaConfig(**small)),
        "all": transformers.BertForMaskedLM(transformers.BertConfig(**small)),
        "": transformers.BertForSequenceClassification(transformers.BertConfig(**small)),
    }
    for wanted, inner in made.items():
        outer = Wrapped(inner) if wrapped else inner
        with torch.no_grad(), ss.probe(outer) as scope:
            outer(input_ids=torch.zeros(1, 5, dtype=torch.long))
        assert [site.expects for site in scope.sites] == [wanted]


def test_arguments_that_tell_of_padding() -> None:
    shown = torch.tensor([[1, 1, 0]])

    class Plain(nn.Module):
        def forward(
            self, tokens: Tensor, attention_mask: Tensor, src_key_padding_mask: Tensor | None = None
        ) -> None: ...

    ids = torch.tensor([[3, 4, 0]])
    found = batch_inputs.of_call(Plain(), (ids, shown), {})
    assert found.tokens is ids
    assert found.shown_to("a", 3).tolist() == [[True, True, False]]  # type: ignore[union-attr]
    assert found.shown_to("a", 4) is None
    assert batch_inputs.of_call(Plain(), (ids,), {"src_key_padding_mask": shown == 0}).shown is None, (
        "whose convention?"
    )
    layer = nn.TransformerEncoderLayer(8, 2)
    torchs = batch_inputs.of_call(layer, (torch.zeros(1, 3, 8),), {"src_key_padding_mask": shown == 0})
    assert torchs.shown.tolist() == [[True, True, False]]  # type: ignore[union-attr]
    assert torchs.sure
    for useless in (torch.zeros(1, 3), torch.full((1, 3), -1e4), torch.zeros(1, 1, 3, 3), "no mask"):
        assert batch_inputs.of_call(Plain(), (ids, useless), {}).shown is None
    both = batch_inputs.BatchInputs(None, shown.bool(), ~shown.bool(), two=True)
    assert both.shown_to("decoder.0.self", 3) is both.decoder
    assert both.shown_to("decoder.0.EncDecAttention", 3) is both.shown
    assert both.shown_to("encoder.0", 3) is both.shown
    one = batch_inputs.BatchInputs(None, shown.bool(), None, ~shown.bool())
    assert one.shown_to("layer.0.crossattention", 3) is one.cross
    assert batch_inputs.of_call(Plain(), (ids, shown), {"position_ids": ids}).tokens is None, "they may repeat"
