"""Remedies that change how the weights are formed: checked against the float64 definition, and undone again."""

import copy
import math

import pytest
import torch
from torch.nn import functional

import softscope as ss
import softscope.nn
from doctor.treat.models import HUGGING_FACE, OTHERS, built, output
from softscope import tasks
from softscope.doctor.treat import remedies

# How each remedy is applied, and the options it means for a head of size d.
WAYS = {
    "unit": (remedies.qk_norm, {}, lambda d: {"qk_norm": "unit", "scale": math.sqrt(d)}),
    "rms": (remedies.qk_norm, {"kind": "rms"}, lambda _: {"qk_norm": "rms"}),
    "softcap": (remedies.softcap, {"cap": 0.7}, lambda _: {"softcap": 0.7}),
    "sink": (remedies.sink, {}, lambda _: {"sink": True}),
    "scalable": (remedies.scalable, {"length": 100}, lambda _: {"scalable": 100}),
    "entmax": (remedies.entmax, {}, lambda _: {"alpha": 1.5}),
}


def applied(way, patient):
    function, arguments, _ = WAYS[way]
    return function(patient.model, **arguments)


@pytest.mark.parametrize("way", WAYS)
def test_in_pytorchs_layer_it_is_ours_with_the_option(way):
    patient = built("multihead")
    wanted = softscope.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64, **WAYS[way][2](4))
    wanted.load_state_dict(patient.model.attention.state_dict())
    applied(way, patient)
    x = patient.inputs[0]
    assert torch.equal(output(patient), wanted(x, x, x, need_weights=False)[0])


@pytest.mark.parametrize("way", WAYS)
def test_in_a_small_transformer_it_is_the_option_of_its_layers(way):
    patient = built("small transformer")
    options = WAYS[way][2](4)
    if "sink" in options:
        options["sink"] = 0.0
    wanted = tasks.SmallTransformer(
        vocabulary=9, length=8, d=12, heads=3, layers=2, options=tasks.AttentionOptions(**options)
    ).double()  # fmt: skip
    before = output(patient)
    applied(way, patient)
    assert torch.equal(output(patient), wanted(*patient.inputs))
    assert (output(patient) - before).abs().max() > 1e-6


def by_definition(way, module, query, key, value, mask, scale):
    """(B, n, heads, d), written out with tensor operations and the published maps."""
    d, groups = query.shape[-1], query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    if way in ("unit", "rms"):
        query, key = (x / x.norm(dim=-1, keepdim=True) for x in (query, key))
        scale = math.sqrt(d) if way == "unit" else scale * d
    logits = scale * query @ key.transpose(-1, -2)
    causal = getattr(module, "is_causal", False)
    n, m = logits.shape[-2:]
    visible = torch.ones(n, m).tril().bool() if causal and mask is None else torch.ones(n, m).bool()
    visible = visible.expand_as(logits) if mask is None else (visible & mask).expand_as(logits)
    if way == "scalable":
        logits = logits * (visible.sum(-1, keepdim=True).double().log() / math.log(100))
    if way == "softcap":
        logits = 0.7 * torch.tanh(logits / 0.7)
    logits = logits.masked_fill(~visible, -math.inf)
    if way == "sink":
        logits = functional.pad(logits, (0, 1))
    weights = ss.entmax(logits, 1.5) if way == "entmax" else torch.softmax(logits, -1)
    return (weights[..., :m] @ value).transpose(1, 2), None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HUGGING_FACE)
def test_in_hugging_face_models_it_is_the_definition(way, name, monkeypatch):
    patient = built(name)
    from transformers.modeling_utils import AttentionInterface

    def definition(module, query, key, value, mask, scaling=None, **_):
        return by_definition(
            way, module, query, key, value, mask, query.shape[-1] ** -0.5 if scaling is None else scaling
        )

    mask = torch.ones_like(patient.inputs[0])
    mask[1, -2:] = 0  # padding, so there is a mask
    for named in ({}, {"attention_mask": mask}):
        with monkeypatch.context() as patched:
            patched.setitem(AttentionInterface._global_mapping, "sdpa", definition)
            wanted = patient.model(*patient.inputs, **named)[0]
        bare = patient.model(*patient.inputs, **named)[0]
        done = applied(way, patient)
        assert len(done.changes) == 2
        found = patient.model(*patient.inputs, **named)[0]
        shown = mask.bool() if named else torch.ones_like(mask).bool()
        torch.testing.assert_close(found[shown], wanted[shown], rtol=1e-9, atol=1e-10)
        assert (found - bare)[shown].abs().max() > 1e-6
        done.undo()
        assert torch.equal(patient.model(*patient.inputs, **named)[0], bare)
        assert patient.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OTHERS)
def test_undone_everything_is_as_it_was(way, name):
    patient = built(name)
    before, state = output(patient), copy.deepcopy(patient.model.state_dict())
    kinds = [type(module) for module in patient.model.modules()]
    done = applied(way, patient)
    assert (output(patient) - before).abs().max() > 1e-9
    assert {key: value for key, value in patient.model.state_dict().items() if key in state}.keys() == state.keys()
    done.undo()
    assert torch.equal(output(patient), before)
    assert [type(module) for module in patient.model.modules()] == kinds
    assert patient.model.state_dict().keys() == state.keys()


@pytest.mark.parametrize("name", ["multihead", "small transformer", "llama"])
@pytest.mark.parametrize("way", WAYS)
def test_training_goes_on_and_learns_what_is_new(way, name):
    patient = built(name)
    done = applied(way, patient)
    patient.model.train()
    optimizer = torch.optim.Adam(patient.model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        loss = (output(patient) - 1.0).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    wanted = {"sink": True, "scalable": True, "rms": name != "llama"}.get(way, False)
    assert bool(done.parameters) == wanted
    assert all(bool((parameter.grad != 0).any()) for parameter in done.parameters)


def test_dropout_stays_in_hugging_face_models():
    patient = built("llama")
    for layer in patient.model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    remedies.softcap(patient.model, [patient.site], cap=3.0)
    patient.model.train()
    assert not torch.equal(output(patient), output(patient))


def test_a_treated_model_is_read_by_the_probe():
    for name in ("llama", "multihead", "small transformer"):
        patient = built(name)
        bare = [site.name for site in probed(patient).sites]
        remedies.softcap(patient.model, cap=3.0)
        scope = probed(patient)
        assert [site.name for site in scope.sites] == bare
        assert not scope.history().unseen


def probed(patient):
    with ss.probe(patient.model) as scope:
        output(patient).sum().backward()
    return scope


def test_undone_in_any_order():
    for name in ("multihead", "small transformer", "llama"):
        for order in ((0, 1), (1, 0)):
            patient = built(name)
            before = output(patient)
            done = [remedies.temperature(patient.model, {patient.site: {0: 3.0}}), remedies.sink(patient.model)]
            for place in order:
                done[place].undo()
            assert torch.equal(output(patient), before), (name, order)
