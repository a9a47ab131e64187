"""Heads drawn anew: only theirs, with a spread of about 1, the same every time, and undone to the bit."""

import pytest
import torch
from torch import nn

import softscope as ss
import softscope.nn
from doctor.patients import SelfMultihead
from doctor.treat.models import ALL, built, output
from doctor.treat.test_weights import Heard
from softscope import tasks
from softscope.doctor.treat import remedies


@pytest.mark.parametrize("name", ALL)
def test_only_these_heads_change_and_undo_restores_every_bit(name):
    patient = built(name)
    before = Heard(patient)
    state = {key: value.clone() for key, value in patient.model.state_dict().items()}
    whole = list(range(patient.group))  # all query heads of the first key head
    done = remedies.reinitialise(patient.model, {patient.site: whole}, seed=5)
    after = Heard(patient)
    first, new = before.logits[patient.site], after.logits[patient.site]
    others = [h for h in range(patient.heads) if h not in whole]
    assert torch.equal(new[:, others], first[:, others])
    assert (new[:, whole] - first[:, whole]).abs().amin(dim=(0, 2, 3)).min() >= 0
    assert all(float((new[:, h] - first[:, h]).abs().max()) > 1e-3 for h in whole)
    assert "saved with them" in done.kept.en
    again = built(name)
    exec(done.code, {"remedies": remedies, "model": again.model})
    assert torch.equal(output(again), after.output)
    done.undo()
    assert all(torch.equal(value, state[key]) for key, value in patient.model.state_dict().items())


def test_a_shared_key_head_is_redrawn_only_with_all_its_query_heads():
    patient = built("llama")
    attention = patient.model.get_submodule(patient.site)
    k = attention.k_proj.weight.detach().clone()
    done = remedies.reinitialise(patient.model, {patient.site: [0, 2, 3]})
    assert torch.equal(attention.k_proj.weight[:8], k[:8]), "query head 1 still reads it"
    assert bool((attention.k_proj.weight[8:] != k[8:]).all())
    assert [change.what.en for change in done.changes] == [
        "W_Q drawn anew; W_K is shared with other heads and stays", "W_Q and W_K drawn anew", "W_Q and W_K drawn anew",
    ]  # fmt: skip


def spreads(model, x):
    with ss.probe(model, every=1, max_rows=None) as scope:
        model(*x)
    return scope.history().series("logit_spread")[0, 0]


@pytest.mark.parametrize("scale", ["sqrt", 1.0, 4.0])
def test_logits_have_a_standard_deviation_of_about_1_at_the_modules_scale(scale):
    model = tasks.RecallModel(256, vocabulary=16, heads=4, options=tasks.AttentionOptions(scale=scale, init_gain=8.0))
    x = tasks.recall_batch(32, pairs=16, generator=torch.Generator().manual_seed(0)).inputs
    assert min(spreads(model, x)) > 5
    remedies.reinitialise(model, {"attention": range(4)})
    assert spreads(model, x) == pytest.approx([1.0] * 4, rel=0.35)
    remedies.reinitialise(model, {"attention": {0: 0.5}})
    assert spreads(model, x)[0] == pytest.approx(0.5, rel=0.35)


@pytest.mark.parametrize("make", [nn.MultiheadAttention, softscope.nn.MultiheadAttention])
def test_biases_become_what_the_module_starts_them_at(make):
    torch.manual_seed(0)
    model = SelfMultihead(make(64, 4, batch_first=True), need_weights=False)
    with torch.no_grad():
        model.attention.in_proj_bias.fill_(9.0)
    remedies.reinitialise(model, {"attention": [0]})
    assert bool((model.attention.in_proj_bias[:16] == 0).all())
    assert bool((model.attention.in_proj_bias[64:80] == 0).all())
    assert bool((model.attention.in_proj_bias[16:64] == 9.0).all())
    assert spreads(model, (torch.randn(8, 24, 64),))[0] == pytest.approx(1.0, rel=0.35)


def test_a_shared_key_of_any_size_is_taken_into_account():
    patient = built("llama")
    attention = patient.model.get_submodule(patient.site)
    with torch.no_grad():
        attention.k_proj.weight[:8] *= 100.0
        attention.k_proj.bias.zero_()
    remedies.reinitialise(patient.model, {patient.site: [0]})
    found = Heard(patient).logits[patient.site]
    ratio = float(found[:, 0].std() / found[:, 1].std())
    assert ratio < 0.1


@pytest.mark.parametrize(
    ("heads", "seed", "told"),
    [({"attention": [3]}, 0, "head must be one of 0 … 2"), ({"attention": {0: 0.0}}, 0, "spread must be a positive"),
     ({"attention": [0]}, -1, "seed must be"), ({"attention#2": [0]}, 0, "called several times")],
)  # fmt: skip
def test_what_is_refused(heads, seed, told):
    patient = built("multihead")
    before = output(patient)
    with pytest.raises(ValueError, match=told):
        remedies.reinitialise(patient.model, heads, seed=seed)
    assert torch.equal(output(patient), before)
