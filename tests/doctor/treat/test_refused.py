"""A remedy that cannot be applied is refused in one sentence, and nothing is left half done."""

import re

import pytest
import torch
from torch import nn

import softscope.nn
from doctor.patients import Projected, fused, pytest_transformers
from doctor.treat.models import built
from softscope.doctor.treat import remedies


class Louder(nn.MultiheadAttention):
    pass


def refused(function, *told):
    with pytest.raises(ValueError, match=re.escape(told[0])) as caught:
        function()
    text = str(caught.value)
    assert "\n" not in text
    for part in told:
        assert part in text, text


def test_modules_that_are_not_known():
    model = nn.Sequential(Projected(fused))
    refused(
        lambda: remedies.temperature(model, {"0": {0: 2.0}}, way="weights"),
        "not supported at 0: where Projected keeps", "instead let it be found on a batch",
    )  # fmt: skip
    refused(lambda: remedies.reinitialise(model, {"0": [0]}), "not supported at 0: where Projected keeps", "instead")
    refused(
        lambda: remedies.softcap(model, ["0"]), "not supported at 0: Projected forms its weights in code", "instead"
    )
    refused(lambda: remedies.softcap(model), "model must have attention that softscope knows")
    refused(lambda: remedies.softcap(nn.Sequential(Louder(8, 2)), ["0"]), "Louder forms its weights")


def test_places_and_heads_that_are_not_there():
    model = built("multihead").model
    refused(lambda: remedies.temperature(model, {"nowhere": {0: 2.0}}), "site must be the path", "got 'nowhere';")
    refused(lambda: remedies.temperature(model, {"attention#2": {0: 2.0}}), "called several times", "instead treat")
    refused(lambda: remedies.temperature(model, {"attention": {3: 2.0}}), "head must be one of 0 … 2", "but got 3;")
    refused(lambda: remedies.temperature(model, {"attention": {0: 0.0}}), "temperature must be a positive number")
    refused(lambda: remedies.temperature(model, {"attention": {0: 2.0}}, way="scale"), 'way must be "logits" or')
    refused(lambda: remedies.qk_clip(model, {"attention": [500.0]}), "one number for each head", "3 heads and got 1;")
    refused(lambda: remedies.qk_clip(model, {"attention": [float("inf")] * 3}), "must be finite", "checkpoint")
    refused(lambda: remedies.qk_clip(model, {}, tau=-1), "tau must be a positive number")
    refused(lambda: remedies.scalable(model, length=1), "scalable must be above 1")
    refused(lambda: remedies.qk_norm(model, kind="layer"), "qk_norm must be")


def test_where_q_and_k_are_normalised_their_weights_say_nothing():
    model = softscope.nn.MultiheadAttention(8, 2, qk_norm="rms")
    refused(
        lambda: remedies.temperature(model, {"MultiheadAttention": {0: 2.0}}, way="weights"),
        "normalised after their weights",
    )
    transformers = pytest_transformers()
    config = transformers.Qwen3Config(
        vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=4,
    )  # fmt: skip
    model = transformers.Qwen3ForCausalLM(config)
    refused(lambda: remedies.temperature(model, {"model.layers.0.self_attn": {0: 2.0}}, way="weights"), "(q_norm)")


def test_entmax_and_a_sink_exclude_each_other():
    model = softscope.nn.MultiheadAttention(8, 2, sink=True)
    refused(lambda: remedies.entmax(model), "sink needs alpha = 1")


def test_another_implementation():
    patient = built("llama")
    patient.model.set_attn_implementation("eager")
    refused(lambda: remedies.sink(patient.model), "attention with eager", 'set_attn_implementation("sdpa")')


def test_nothing_is_done_if_one_site_cannot():
    model = nn.Sequential(nn.MultiheadAttention(8, 2), Projected(fused))
    before = torch.cat([p.flatten() for p in model.parameters()])
    refused(lambda: remedies.sink(model, ["0", "1"]), "not supported at 1")
    both = {"0": {0: 2.0}, "1": {0: 2.0}}
    refused(lambda: remedies.temperature(model, both, way="weights"), "not supported at 1")
    refused(lambda: remedies.temperature(model, {"0": {0: 2.0}, "1#2": {0: 2.0}}), "not supported at 1#2")
    refused(lambda: remedies.qk_clip(model, {"0": [500.0, 1.0], "1#2": [500.0, 1.0]}), "not supported at 1#2")
    refused(lambda: remedies.reinitialise(model, {"0": [0], "1": [0]}), "not supported at 1")
    assert type(model[0]) is nn.MultiheadAttention
    assert torch.equal(torch.cat([p.flatten() for p in model.parameters()]), before)
