"""What a head is worth: changing it at its q is what it claims to be, and known heads get the worth they have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from softscope import tasks
from softscope.doctor.evaluation import spoil, subjects, truth
from softscope.doctor.evaluation.projections import HeadMaps, Place, heads
from softscope.doctor.evaluation.subjects import Answering, Subject

SEED = torch.Generator


def batch(subject: Subject, many: int = 16) -> dict[str, Tensor]:
    return subject.batch(many, SEED().manual_seed(0), "held out")


def recall(*, sign: float = 1.0, sharp: float = 8.0, values: float = 1.0) -> Answering:
    """A recall model of one head that reads the key it is asked for; with `sign` −1, any other key."""
    model = tasks.RecallModel(64, vocabulary=16)
    with torch.no_grad():
        model.attention.w_q.weight.copy_(sharp * torch.eye(64))
        model.attention.w_k.weight.copy_(sign * sharp * torch.eye(64))
        model.attention.w_v.weight.mul_(values)
        # The readout gives back the value that was read.
        mixed = model.attention.w_o.weight @ model.attention.w_v.weight @ model.value_table.weight.T
        model.readout.weight.copy_(10.0 * torch.linalg.pinv(mixed) if values else model.readout.weight)
    return Answering(model)


def worth_of(model: Answering, subject: Subject, place: Place) -> truth.Worth:
    return truth.worth(model, batch(subject), {place: heads(model)[place]})[place]


def test_a_head_that_reads_what_it_is_asked_for_is_useful() -> None:
    model = recall()
    assert float(truth.sequence_losses(model, batch(subjects.RECALL)).mean()) < 0.1
    found = worth_of(model, subjects.RECALL, ("model.attention", 0))
    assert found.useful
    assert found.uniform.mean > 1.0


def test_a_head_that_carries_nothing_is_neither_useful_nor_stuck() -> None:
    found = worth_of(recall(values=0.0), subjects.RECALL, ("model.attention", 0))
    assert found.uniform == truth.Change(0.0, 0.0)
    assert not found.useful
    assert not found.stuck


def test_a_head_that_is_sharp_on_wrong_keys_is_stuck() -> None:
    found = worth_of(recall(sign=-1.0), subjects.RECALL, ("model.attention", 0))
    assert not found.useful
    assert found.stuck
    assert found.uniform.falls


def trained(subject: Subject, steps: int, rate: float = 3e-3) -> Answering:
    torch.set_num_threads(1)
    run = subject.run(0, rate)
    generator = SEED().manual_seed(0)
    for _ in range(steps):
        run.step(subject.batch(subject.size, generator, "training"))
    return run.model


def test_spoiling_takes_the_worth_of_a_head() -> None:
    model = trained(subjects.RECALL, 100)
    sizes = {
        place: found.uniform.mean for place, found in truth.worth(model, batch(subjects.RECALL), heads(model)).items()
    }
    best = max(sizes, key=lambda place: sizes[place])
    assert worth_of(model, subjects.RECALL, best).useful
    spoil.shift_k(heads(model)[best], SEED().manual_seed(1))
    after = worth_of(model, subjects.RECALL, best)
    assert not after.useful
    assert after.stuck


@pytest.mark.parametrize("change", [spoil.multiply_q, spoil.shift_k])
def test_spoiling_touches_one_head_and_neither_values_nor_output(change: Any) -> None:
    model = subjects.TEXT.model(0)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    place = ("model.blocks.1.attention", 2)
    change(heads(model)[place], SEED().manual_seed(0))
    differ = [name for name, x in model.state_dict().items() if not torch.equal(x, before[name])]
    assert differ == [
        "model.blocks.1.attention.w_q.weight" if change is spoil.multiply_q else "model.blocks.1.attention.w_k.weight"
    ]
    rows = (model.state_dict()[differ[0]] != before[differ[0]]).any(dim=1)
    assert rows.nonzero().flatten().tolist() == list(range(64, 96))


def test_the_same_shift_of_every_key_is_no_spoiling() -> None:
    model = subjects.TEXT.model(0)
    before = truth.sequence_losses(model, batch(subjects.TEXT, 2))
    model.model.blocks[0].attention.w_k.register_forward_hook(lambda _, __, out: out + 30.0)
    assert torch.allclose(before, truth.sequence_losses(model, batch(subjects.TEXT, 2)), atol=1e-3)


def by_hand(subject: Subject, model: Answering, place: Place, mixed: Any) -> Any:
    """Put `mixed(v)` in place of the head's result, (batch, n, size), where the next linear map takes it."""
    site: Any = model.get_submodule(place[0])
    after = {"text": "w_o", "GPT-2": "c_proj", "Llama": "o_proj"}.get(subject.name)
    seen: list[Tensor] = []
    value: Any = {"text": "w_v", "GPT-2": "c_attn", "Llama": "v_proj", "BERT": "value"}[subject.name]
    getattr(site, value).register_forward_hook(lambda _, __, out: seen.append(out))

    def put(result: Tensor) -> Tensor:
        size = result.shape[-1] // subjects.HEADS
        v = seen.pop()[..., -result.shape[-1] :]  # GPT-2: the last third
        group = result.shape[-1] // v.shape[-1]
        first = place[1] // group * size
        result = result.clone()
        result[..., place[1] * size : (place[1] + 1) * size] = mixed(v[..., first : first + size])
        return result

    if after is None:  # BERT's module ends with the heads' results
        return site.register_forward_hook(lambda _, __, out: (put(out[0]), *out[1:]))
    return getattr(site, after).register_forward_pre_hook(lambda _, given: (put(given[0]),))


def running_mean(v: Tensor) -> Tensor:
    return v.cumsum(dim=1) / torch.arange(1, v.shape[1] + 1)[:, None]


@pytest.mark.parametrize("subject", [subjects.TEXT, subjects.GPT2, subjects.LLAMA, subjects.BERT], ids=lambda x: x.name)
def test_uniform_is_the_mean_of_the_visible_values(subject: Subject) -> None:
    if subject is not subjects.TEXT:
        pytest.importorskip("transformers", reason="pip install transformers")
    model = subject.model(0)
    some = batch(subject, 3)
    place = list(heads(model))[6]
    for linear in (heads(model)[place].q, heads(model)[place].k):
        with torch.no_grad():
            linear.multiply(8.0)  # a head that is nothing like uniform
    before = truth.sequence_losses(model, some)
    with heads(model)[place].q.multiplied(0.0):
        found = truth.sequence_losses(model, some)
    mean = running_mean if subject is not subjects.BERT else lambda v: v.mean(dim=1, keepdim=True).expand_as(v)
    by_hand(subject, model, place, mean)
    assert torch.allclose(found, truth.sequence_losses(model, some), atol=1e-5)
    assert not torch.allclose(found, before, atol=1e-4), "the test says nothing if the head does not matter"


def test_softer_divides_the_logits() -> None:
    """The weights written down in float64, at a temperature, give the same."""
    model = subjects.TEXT.model(0)
    some = batch(subjects.TEXT, 2)
    layer: Any = model.model.blocks[1].attention
    with heads(model)["model.blocks.1.attention", 3].q.multiplied(1 / 4.0):
        found = truth.sequence_losses(model, some)

    def written_down(module: Any, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
        del out
        q, k, v = (
            module.split(f(x)).double() for f, x in zip((module.w_q, module.w_k, module.w_v), given, strict=True)
        )
        logits = module.factor * q @ k.transpose(-1, -2)
        logits[:, 3] /= 4.0
        hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
        mixed = torch.softmax(logits.masked_fill(hidden, -torch.inf), dim=-1) @ v
        return module.w_o(mixed.transpose(1, 2).flatten(-2).float())

    layer.register_forward_hook(written_down)
    assert torch.allclose(found, truth.sequence_losses(model, some), atol=1e-5)


def test_grouped_queries_keep_their_keys() -> None:
    pytest.importorskip("transformers", reason="pip install transformers")
    found: dict[Place, HeadMaps] = heads(subjects.LLAMA.model(0))
    assert [maps.k.start for maps in found.values()] == [0, 0, 16, 16] * 2
    assert not any(maps.alone for maps in found.values())
    model = subjects.LLAMA.model(0)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    with torch.no_grad():
        next(iter(heads(model).values())).draw(SEED())
    differ = [name for name, x in model.state_dict().items() if not torch.equal(x, before[name])]
    assert differ == ["model.model.layers.0.self_attn.q_proj.weight"]


def test_the_model_is_left_as_it_was() -> None:
    model = subjects.DEEP.model(0).train()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    place = ("model.blocks.0.attention", 1)
    worth_of(model, subjects.DEEP, place)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_who_learned() -> None:
    target = torch.tensor([0, 0, 0, 1, tasks.IGNORED])
    # Three of four, plus one each: 4/6 and 2/6.
    assert truth.best_constant(target, torch.tensor([0, 1])) == pytest.approx(
        -0.5 * float(torch.tensor([4 / 6, 2 / 6]).log().sum())
    )
    losses = torch.tensor([1.0, 1.2, 0.8, 1.0]).double()
    assert truth.learned(losses, bound=2.0)
    assert not truth.learned(losses, bound=1.1)
    assert not truth.learned(losses * torch.tensor([0.1, 4.0, 0.1, 0.1]), bound=2.0), "not beyond its error"
