"""From the probe's readings to a treated model: what is prescribed can be applied, and it helps."""

import math
import unittest.mock

import pytest
import torch
from torch import nn

import softscope as ss
from doctor.judge.histories import history
from doctor.patients import SelfMultihead
from softscope import tasks
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.treat import remedies
from softscope.doctor.treat.treatment import REST, Treatment


def batches(generator):
    return tasks.recall_batch(8, pairs=16, generator=generator)


def watched(model, steps, seed=0):
    with ss.probe(model, every=5, max_rows=None) as scope:
        told = tasks.train(
            model, batches, steps=steps, seed=seed, on_step=lambda _, loss, __: scope.step(loss=loss)
        )  # fmt: skip
    return scope, told


def test_a_stuck_model_is_treated_and_learns():
    torch.set_num_threads(1)
    model = tasks.RecallModel(256, vocabulary=16, options=tasks.AttentionOptions(scale=1.0))
    scope, told = watched(model, 60)
    assert told.recent_accuracy() < 0.3
    (given,) = scope.prescribe()
    assert given.remedy == "scale"
    done = given.apply(model)
    assert [(change.site, change.heads) for change in done.changes] == [("attention", (0,))]
    with remedies.largest_logits(model) as largest:
        model(*batches(torch.Generator().manual_seed(7)).inputs)
    assert 0.5 * REST < largest["attention"][0] < 2 * REST  # readings are signed, and come from other sequences
    scope, told = watched(model, 80, seed=1)
    assert told.recent_accuracy() > 0.9
    assert diagnose(scope.history()).states["starving"] == 0


def test_a_spoiled_head_goes_back_to_its_siblings_size():
    torch.manual_seed(0)
    model = SelfMultihead(nn.MultiheadAttention(32, 4, batch_first=True), need_weights=False)
    x = 2.0 * torch.randn(4, 24, 32)
    with torch.no_grad():
        model.attention.in_proj_weight[8:16] *= 30.0
    with ss.probe(model, every=1, max_rows=None) as scope:
        for _ in range(3):
            model(x)
    (given,) = scope.prescribe()
    assert given.remedy == "repair"
    before = model.attention.in_proj_weight.detach().clone()
    with remedies.largest_logits(model) as first:
        model(x)
    done = given.apply(model)
    with remedies.largest_logits(model) as after:
        model(x)
    assert after["attention"][1] < 3 * max(after["attention"][h] for h in (0, 2, 3)) < first["attention"][1] / 3
    changed = (model.attention.in_proj_weight != before).any(dim=1).nonzero().flatten().tolist()
    assert changed == [*range(8, 16), *range(40, 48)], "W_Q and W_K of head 1 alone"
    done.undo()
    assert torch.equal(model.attention.in_proj_weight, before)


def test_what_is_no_change_of_the_model_is_refused_with_what_to_do():
    (given,) = diagnose(history(site={"dtype": "float16"}, lse_min={1: -99.0})).prescriptions
    with pytest.raises(
        remedies.NotSupportedError, match="not supported: dtype is nothing to change in the model; scale q"
    ):
        given.apply(nn.Linear(2, 2))


def test_the_dose():
    scaled = history(site={"scale": 1.0, "head_size": 64}, blocked=0.9, max_logit={0: 10.0, 1: 400.0})
    treatment = diagnose(scaled).prescriptions[0].treatment
    assert treatment.remedy == "temperature"
    assert treatment.heads["layers.0.attention"][0] == 8.0, "√d"
    assert treatment.heads["layers.0.attention"][1] == pytest.approx(80.0), "what brings 400 to 5"
    growing = diagnose(history(max_logit={1: 2000.0})).prescriptions[0].treatment
    assert (growing.remedy, growing.heads, growing.tau) == (
        "qk-clip", {"layers.0.attention": {1: 2000.0}}, {"layers.0.attention": 100.0}
    )  # fmt: skip


CODES = {
    "temperature": Treatment("temperature", {"attention": {0: 4.1234567890123, 2: 2.0}}),
    "all heads": Treatment("temperature", {"attention": dict.fromkeys(range(3), math.pi)}),
    "clip": Treatment("qk-clip", {"attention": {0: 50.123456, 1: 70.0}}, {"attention": 9.87654321}),
    "anew": Treatment("reinitialise", {"attention": {1: 0.9876543}}, seed=7),
    "unit QK-norm": Treatment("unit-qk-norm", {"attention": {0: 1.0, 1: 1.0, 2: 1.0}}),
}


@pytest.mark.parametrize("name", CODES)
def test_the_code_does_to_the_bit_what_apply_does(name):
    torch.manual_seed(0)
    treatment = CODES[name]
    models = [SelfMultihead(nn.MultiheadAttention(12, 3, batch_first=True), need_weights=False) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    x = torch.randn(2, 5, 12)
    before = models[0](x)
    done = treatment.apply(models[0])
    exec("from softscope.doctor import remedies\n" + treatment.code(), {"model": models[1]})
    one, other = (model.state_dict() for model in models)
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[key]) for key, value in one.items())
    assert torch.equal(models[0](x), models[1](x))
    assert not torch.equal(models[0](x), before)
    done.undo()
    exec("from softscope.doctor import remedies\n" + done.code, {"model": models[0]})
    assert torch.equal(models[0](x), models[1](x)), "and so does what the result names"


def test_the_code_lists_every_head_with_every_digit():
    heads = {f"layers.{i}.'a\"b": {h: math.pi * (h + 1) for h in range(8)} for i in range(9)}
    for treatment in (
        Treatment("temperature", heads),
        Treatment("qk-clip", heads, {site: 5.0 + i % 2 for i, site in enumerate(heads)}),
        Treatment("reinitialise", heads, seed=3),
    ):
        seen = unittest.mock.Mock()
        exec(treatment.code(), {"remedies": seen, "model": None})
        assert {site: doses for made in seen.mock_calls for site, doses in made.args[1].items()} == heads
        assert "…" not in treatment.code()
        assert max(map(len, treatment.code().splitlines())) < 240
