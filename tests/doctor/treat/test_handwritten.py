"""Remedies on modules that nobody told us about: at the call itself, or in the rows that the numbers point to."""

import copy
import io
import warnings

import pytest
import torch
from torch import nn

import softscope as ss
from doctor.patients import SelfMultihead
from doctor.treat.handwritten import MIXES, SIZE, SPLITS, D, Normed, Packed, Shared, in_thirds, made, tokens
from doctor.treat.models import built, output
from doctor.treat.test_weights import Heard
from softscope.doctor.treat import remedies
from softscope.doctor.treat.remedies.applied import NotSupportedError


def divided(model, head, value):
    """By definition: the module's own code, with q of the head divided."""
    module = model[0]
    split = module.split

    def changed(y):
        q, k, v = split(y)
        q = torch.cat([q[:, :head], q[:, head : head + 1] / value, q[:, head + 1 :]], dim=1)
        return q, k, v

    module.split = changed
    try:
        return model(tokens())
    finally:
        module.split = split


@pytest.mark.parametrize("mix", MIXES)
def test_a_temperature_at_the_call_divides_the_queries_of_its_head(mix):
    model = made(lambda: Packed(in_thirds, MIXES[mix]))
    before = model(tokens())
    wanted = divided(model, 2, 50.0)
    done = remedies.temperature(model, {"0": {2: 50.0}})
    assert [(c.site, c.heads, c.place) for c in done.changes] == [("0", (2,), "call")]
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-12, atol=1e-12)
    assert (wanted - before).abs().max() > 1e-4
    remedies.temperature(model, {"0": {0: 4.0}}).undo()
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-12, atol=1e-12)
    done.undo()
    assert torch.equal(model(tokens()), before)
    assert not model[0]._forward_pre_hooks
    assert not model[0]._forward_hooks
    assert not any("softscope" in name for name, _ in model.named_parameters())


def test_a_key_hidden_by_a_finite_mask_stays_hidden_at_any_temperature():
    model = made(lambda: Packed(in_thirds, MIXES["softmax"]))
    remedies.temperature(model, {"0": {0: 1e5}})
    x = tokens()
    changed = x.clone()
    changed[:, 4:] += 1.0
    torch.testing.assert_close(model(x)[:, :4], model(changed)[:, :4], rtol=0, atol=0)


class Louder(nn.MultiheadAttention):
    """A subclass may change anything, so its class is left alone."""


@pytest.mark.parametrize("weights", [True, False])
def test_a_subclass_of_pytorchs_layer(weights):
    torch.manual_seed(0)
    model = SelfMultihead(Louder(D, 4, batch_first=True), need_weights=weights).double()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.attention.in_proj_weight[SIZE : 2 * SIZE] /= 7.0
        twin.attention.in_proj_bias[SIZE : 2 * SIZE] /= 7.0
    remedies.temperature(model, {"attention": {1: 7.0}})
    for training in (True, False):
        torch.testing.assert_close(model.train(training)(tokens()), twin(tokens()), rtol=1e-12, atol=1e-12)


def test_hugging_faces_eager_attention():
    patient = built("llama")
    patient.model.set_attn_implementation("eager")
    before = Heard(patient)
    with ss.probe(patient.model, every=1) as scope:
        output(patient)
    done = remedies.temperature(patient.model, {patient.site: {1: 5.0}})
    assert {c.place for c in done.changes} == {"call"}
    twin = built("llama")
    twin.model.set_attn_implementation("eager")
    remedies.temperature(twin.model, {patient.site: {1: 5.0}}, way="weights")
    torch.testing.assert_close(output(patient), output(twin), rtol=1e-10, atol=1e-12)
    with ss.probe(patient.model, every=1) as after:
        output(patient)
    for name in ("max_logit", "q_norm"):
        old, new = (s.history().series(name)[0, 0] for s in (scope, after))
        assert new == pytest.approx(old / [1, 5, 1, 1], rel=1e-5), name
    done.undo()
    assert torch.equal(Heard(patient).output, before.output)


@pytest.mark.parametrize("mix", MIXES)
def test_the_probe_and_trials_read_what_the_treated_model_computes(mix):
    model = made(lambda: Packed(in_thirds, MIXES[mix]))
    with ss.probe(model, every=1, max_rows=None) as bare:
        first = model(tokens())
    remedies.temperature(model, {"0": {1: 8.0}})
    plain = model(tokens())
    with ss.probe(model, every=1, max_rows=None) as scope:
        read = model(tokens())
    assert torch.equal(read, plain), "reading changes nothing"
    assert not torch.equal(plain, first)
    name = "max_logit" if "sdpa" in mix else "logit_spread"
    old, new = (s.history().series(name)[0, 0] for s in (bare, scope))
    assert new == pytest.approx(old / [1, 8, 1, 1], rel=1e-4)


def test_it_survives_training_copies_and_torch_save_and_says_what_it_does_not_survive():
    model = made(lambda: Packed(in_thirds))
    done = remedies.temperature(model, {"0": {1: 8.0}})
    wanted = model(tokens())
    assert torch.equal(copy.deepcopy(model)(tokens()), wanted)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(tokens()), wanted)
    fresh = made(lambda: Packed(in_thirds))
    exec(done.kept.en.partition("loading: ")[2], {"remedies": remedies, "model": fresh})
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(tokens()), wanted)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(tokens()).square().mean().backward()
    optimizer.step()
    assert not torch.equal(model(tokens()), wanted)
    with torch.no_grad():
        assert float(model[0].softscope_call_temperature.exp()) == pytest.approx(8.0)


def test_where_no_call_can_be_changed_one_warning_says_so_and_the_model_runs():
    class Own(nn.Module):
        def forward(self, x):
            weights = (x @ x.mT).exp()
            return weights / weights.sum(-1, keepdim=True) @ x

    model = nn.Sequential(Own())
    remedies.temperature(model, {"0": {0: 2.0}})
    x = torch.randn(1, 3, 4)
    with pytest.warns(RuntimeWarning, match="no effect in Own, because no attention call"):
        found = model(x)
    assert torch.equal(found, Own()(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(x)


def test_a_module_that_raises_leaves_no_mode_behind():
    class Failing(Packed):
        def forward(self, x):
            super().forward(x)
            raise RuntimeError("no")

    model = nn.Sequential(Failing(in_thirds))
    remedies.temperature(model, {"0": {0: 2.0}})
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            model(tokens().float())
    from torch.overrides import _get_current_function_mode_stack

    assert not _get_current_function_mode_stack()
    q = torch.randn(1, 4, 3, 8)
    assert torch.equal(MIXES["sdpa"](q, q, q), MIXES["sdpa"](q, q, q))


# Layouts.


def found_layout(model):
    with torch.no_grad(), remedies.layouts(model) as layout:
        model(tokens())
    return layout


@pytest.mark.parametrize("split", SPLITS)
def test_the_rows_of_a_packed_projection_are_found_by_what_they_give(split):
    model = made(lambda: Packed(SPLITS[split]))
    layout = found_layout(model)
    before = model(tokens())
    wanted = divided(model, 3, 6.0)
    done = remedies.temperature(model, {"0": {3: 6.0}}, way="weights", layout=layout)
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-10, atol=1e-12)
    assert "saved with them" in done.kept.en
    done.undo()
    clipped = remedies.qk_clip(model, {"0": {3: 60.0}}, tau=10.0, layout=layout)
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-10, atol=1e-12)
    assert {change.place for change in clipped.changes} == {"weights"}
    clipped.undo()
    new = remedies.reinitialise(model, {"0": [3]}, layout=layout)
    assert (model(tokens()) - before).abs().max() > 1e-4
    again = made(lambda: Packed(SPLITS[split]))
    exec(new.code, {"remedies": remedies, "model": again})
    assert torch.equal(again(tokens()), model(tokens()))
    new.undo()
    assert torch.equal(model(tokens()), before)


def test_repeated_key_heads_are_one():
    layout = found_layout(made(Shared))
    assert layout["0"] == remedies.Layout("0.a", "0.b", SIZE, (0, 8, 16, 24), (0, 8))


def test_what_is_normalised_in_between_has_no_layout():
    assert found_layout(made(Normed)) == {}
    assert not any(module._forward_hooks for module in made(Normed).modules())


def test_without_a_layout_the_clip_is_a_temperature_at_the_call():
    model = made(lambda: Packed(in_thirds))
    wanted = divided(model, 3, 6.0)
    done = remedies.qk_clip(model, {"0": {3: 60.0}}, tau=10.0)
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-10, atol=1e-12)
    assert {change.place for change in done.changes} == {"call"}
    with pytest.raises(NotSupportedError, match="no factor on weights"):
        done.fold()


def test_a_temperature_is_folded_into_the_weights_exactly():
    model = made(lambda: Packed(in_thirds))
    layout = found_layout(model)
    before = model(tokens())
    done = remedies.temperature(model, {"0": {3: 8.0}})
    wanted = model(tokens())
    with pytest.raises(NotSupportedError, match="let it be found on a batch"):
        done.fold()
    assert torch.equal(model(tokens()), wanted), "and nothing is lost"
    done.fold(layout)
    torch.testing.assert_close(model(tokens()), wanted, rtol=1e-13, atol=1e-13)
    assert done.kept.en == "in the weights: saved with them"
    plain = made(lambda: Packed(in_thirds))
    plain.load_state_dict(model.state_dict())
    assert torch.equal(plain(tokens()), model(tokens()))
    done.undo()
    assert torch.equal(model(tokens()), before)


@pytest.mark.parametrize("name", ["multihead", "small transformer", "llama", "our multihead"])
def test_a_temperature_in_the_options_is_folded_and_saved(name):
    patient = built(name)
    names = list(patient.model.state_dict())
    done = remedies.temperature(patient.model, {patient.site: {1: 4.0}})
    wanted = output(patient)
    assert "not in save_pretrained" in done.kept.en
    done.fold()
    torch.testing.assert_close(output(patient), wanted, rtol=1e-10, atol=1e-12)
    assert list(patient.model.state_dict()) == names
    other = built(name)
    other.model.load_state_dict(patient.model.state_dict())
    torch.testing.assert_close(output(other), wanted, rtol=1e-10, atol=1e-12)


def test_under_a_compiler_the_head_is_treated_all_the_same():
    model = made(lambda: Packed(in_thirds))
    remedies.temperature(model, {"0": {1: 8.0}})
    wanted = model(tokens())
    compiled = torch.compile(model, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own, about what it cannot trace
        for _ in range(2):
            torch.testing.assert_close(compiled(tokens()), wanted, rtol=1e-12, atol=1e-12)
