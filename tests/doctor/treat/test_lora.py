"""Models with LoRA adapters: remedies reach the base and the adapter together, and say what gets saved."""

import copy

import pytest
import torch
from torch import nn

from doctor.treat.handwritten import SIZE, D, Lora, Packed, in_thirds, made, tokens, wrapped
from doctor.treat.models import built, output
from doctor.treat.test_weights import Heard
from softscope.doctor.treat import remedies

NAMES = {
    "llama": ("q_proj", "k_proj"),
    "bert": ("query", "key"),
    "distilbert": ("q_lin",),
    "gpt2": ("c_attn",),
    "small transformer": ("w_q", "w_k"),
}


def adapted(name):
    patient = built(name)
    wrapped(patient.model, *NAMES[name])
    torch.manual_seed(3)
    for module in patient.model.modules():
        if isinstance(module, Lora):
            nn.init.normal_(module.lora_B["default"].weight, std=0.2)
    return patient


@pytest.mark.parametrize("way", ["logits", "weights"])
@pytest.mark.parametrize("name", NAMES)
def test_a_temperature_divides_the_logits_of_base_and_adapter(name, way):
    patient = adapted(name)
    before = Heard(patient)
    done = remedies.temperature(patient.model, {patient.site: {1: 5.0}}, way=way)
    after = Heard(patient)
    first, treated = before.logits[patient.site], after.logits[patient.site]
    torch.testing.assert_close(treated[:, 1], first[:, 1] / 5.0, rtol=1e-12, atol=1e-12)
    others = [h for h in range(patient.heads) if h != 1]
    torch.testing.assert_close(treated[:, others], first[:, others], rtol=1e-14, atol=0)
    if way == "weights":
        assert "PEFT's save_pretrained stores only the adapter" in done.kept.en
        assert "remedies.temperature(model" in done.kept.zh
    done.undo()
    assert torch.equal(Heard(patient).output, before.output)


@pytest.mark.parametrize("name", NAMES)
def test_the_clip_shrinks_base_and_adapter(name):
    patient = adapted(name)
    before = Heard(patient)
    done = remedies.qk_clip(patient.model, {patient.site: {1: 50.0}}, tau=10.0)
    first, treated = before.logits[patient.site], Heard(patient).logits[patient.site]
    torch.testing.assert_close(treated[:, 1], first[:, 1] / 5.0, rtol=1e-12, atol=1e-12)
    done.undo()
    assert torch.equal(Heard(patient).output, before.output)


def test_merging_the_adapter_later_gives_the_same():
    patient = adapted("llama")
    remedies.temperature(patient.model, {patient.site: {1: 5.0}}, way="weights")
    wanted = output(patient)
    for module in patient.model.modules():
        if isinstance(module, Lora):
            with torch.no_grad():
                a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
                module.base_layer.weight += 2.0 * b @ a
                b.zero_()
    torch.testing.assert_close(output(patient), wanted, rtol=1e-10, atol=1e-12)


def test_a_head_drawn_anew_starts_with_an_adapter_of_zero():
    patient = adapted("llama")
    q = patient.model.get_submodule(patient.site).q_proj
    before = copy.deepcopy(q.state_dict())
    done = remedies.reinitialise(patient.model, {patient.site: [1]})
    assert bool((q.lora_B["default"].weight[8:16] == 0).all())
    assert bool((q.base_layer.weight[8:16] != before["base_layer.weight"][8:16]).all())
    assert torch.equal(q.lora_B["default"].weight[16:], before["lora_B.default.weight"][16:])
    done.undo()
    assert all(torch.equal(value, before[name]) for name, value in q.state_dict().items())


def test_a_packed_projection_with_an_adapter_has_a_layout():
    model = made(lambda: Packed(in_thirds))
    wrapped(model, "everything")
    nn.init.normal_(model[0].everything.lora_B["default"].weight)
    with torch.no_grad(), remedies.layouts(model) as layout:
        model(tokens())
    assert layout["0"] == remedies.Layout("0.everything", "0.everything", SIZE, (0, 8, 16, 24), (32, 40, 48, 56))
    remedies.temperature(model, {"0": {1: 5.0}}, way="weights", layout=layout)
    weight = model[0].everything.lora_B["default"].weight
    assert weight.shape[0] == 3 * D


def test_an_adapter_that_normalises_weights_is_treated_at_its_logits():
    patient = adapted("bert")
    module = patient.model.get_submodule(patient.site)
    module.query.lora_magnitude_vector = nn.ModuleDict({"default": nn.Identity()})
    with pytest.raises(remedies.NotSupportedError, match=r"DoRA.* normalises the weights; instead treat the logits"):
        remedies.temperature(patient.model, {patient.site: {1: 5.0}}, way="weights")
    first = Heard(patient).logits[patient.site]
    remedies.qk_clip(patient.model, {patient.site: {1: 50.0}}, tau=10.0)
    torch.testing.assert_close(Heard(patient).logits[patient.site][:, 1], first[:, 1] / 5.0, rtol=1e-10, atol=1e-12)
