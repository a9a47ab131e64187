"""Temperature and QK-clip: what they do to the logits, in every layout, and what they leave alone."""

import math

import pytest
import torch

from doctor.treat.models import ALL, HUGGING_FACE, built, output
from softscope.doctor.listen import functions, module_paths, patches
from softscope.doctor.treat import remedies
from softscope.doctor.treat.treatment import Treatment


class Heard:
    """The logits scale·q·k of every call, (B, heads, n, m), by site."""

    def __init__(self, patient):
        import threading

        self.thread, self.paths, self.logits = threading.get_ident(), module_paths.paths(patient.model), {}
        patches.listen(self, functions.all_patches(patient.model))
        try:
            self.output = output(patient).detach()
        finally:
            patches.stop(self)

    def hear(self, observed):
        k = observed.k.repeat_interleave(observed.heads // observed.k.shape[1], dim=1)
        self.logits[module_paths.innermost(self.paths)[0] + observed.below] = observed.options.scale * (
            observed.q @ k.transpose(-1, -2)
        )

    def trouble(self, error):
        raise error


@pytest.mark.parametrize("way", ["logits", "weights"])
@pytest.mark.parametrize("name", ALL)
def test_a_temperature_divides_the_logits_of_its_head(name, way):
    patient = built(name)
    before = Heard(patient)
    done = remedies.temperature(patient.model, {patient.site: {1: 5.0}}, way=way)
    after = Heard(patient)
    first, treated = before.logits[patient.site], after.logits[patient.site]
    torch.testing.assert_close(treated[:, 1], first[:, 1] / 5.0, rtol=1e-12, atol=1e-12)
    others = [h for h in range(patient.heads) if h != 1]
    torch.testing.assert_close(treated[:, others], first[:, others], rtol=1e-14, atol=0)
    assert way == "logits" or torch.equal(treated[:, others], first[:, others])
    assert (after.output - before.output).abs().max() > 1e-6
    assert [(c.site, c.heads) for c in done.changes] == [(patient.site, (1,))]
    done.undo()
    assert torch.equal(Heard(patient).output, before.output)
    assert not done


@pytest.mark.parametrize("way", ["logits", "weights"])
@pytest.mark.parametrize("name", HUGGING_FACE)
def test_a_temperature_is_a_smaller_scale_in_the_forward_pass(name, way, monkeypatch):
    """By definition: the same model, with the head's queries divided where attention is computed."""
    patient = built(name)
    from transformers.modeling_utils import AttentionInterface

    sdpa = AttentionInterface._global_mapping["sdpa"]
    module = patient.model.get_submodule(patient.site)

    def divided(here, query, *rest, **named):
        if here is module:
            query = torch.cat([query[:, :2], query[:, 2:3] / 3.0, query[:, 3:]], dim=1)
        return sdpa(here, query, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setitem(AttentionInterface._global_mapping, "sdpa", divided)
        wanted = output(patient)
    remedies.temperature(patient.model, {patient.site: {2: 3.0}}, way=way)
    torch.testing.assert_close(output(patient), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["multihead", "our multihead", "small transformer", "llama"])
def test_a_temperature_on_logits_is_not_trained_and_adds_up(name):
    patient = built(name)
    wanted = Heard(patient).logits[patient.site][:, 0] / 6.0
    for value in (2.0, 3.0):
        assert not remedies.temperature(patient.model, {patient.site: {0: value}}).parameters
    torch.testing.assert_close(Heard(patient).logits[patient.site][:, 0], wanted, rtol=1e-10, atol=1e-12)
    if name == "our multihead":  # it already had a learned temperature
        assert patient.model.attention.log_temperature.requires_grad
        return
    new = [p for key, p in patient.model.named_parameters() if key.endswith("log_temperature")]
    assert new
    assert not any(p.requires_grad for p in new)


def clip(patient, tau):
    """Repeat until nothing is clipped: each layer's input depends on the layers before it."""
    for _ in range(4):
        with remedies.largest_logits(patient.model) as largest:
            output(patient)
        done = remedies.qk_clip(patient.model, largest, tau=tau)
        if not done:
            return largest
    raise AssertionError("no end")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_largest_logit_is_the_bound(name, dtype):
    patient = built(name)
    patient.model.to(dtype)
    if patient.inputs[0].is_floating_point():
        patient = patient._replace(inputs=tuple(x.to(dtype) for x in patient.inputs))
    with remedies.largest_logits(patient.model) as largest:
        output(patient)
    tau = sum(sorted(largest[patient.site])[:2]) / 2  # between the two smallest, so one head is healthy
    after = clip(patient, tau)
    for site, tops in after.items():
        assert max(tops) <= tau, site
    top = max(after[patient.site])
    assert top > tau * (1.0 - (1e-12 if dtype == torch.float64 else 1e-4))


@pytest.mark.parametrize("name", ALL)
def test_the_largest_logit_is_measured(name):
    patient = built(name)
    with remedies.largest_logits(patient.model) as largest:
        heard = Heard(patient)
    logits = heard.logits[patient.site]
    if name in ("llama", "gpt2", "small transformer"):
        logits = logits.masked_fill(~torch.ones(logits.shape[-2:]).tril().bool(), 0.0)
    wanted = logits.abs().amax(dim=(0, 2, 3))
    torch.testing.assert_close(torch.tensor(largest[patient.site], dtype=torch.float64), wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ALL)
def test_healthy_heads_keep_every_bit(name):
    patient = built(name)
    before = Heard(patient)
    tops = {patient.site: [1.0] * patient.heads}
    tops[patient.site][1] = 50.0
    done = remedies.qk_clip(patient.model, tops, tau=10.0)
    after = Heard(patient)
    first, treated = before.logits[patient.site], after.logits[patient.site]
    torch.testing.assert_close(treated[:, 1], first[:, 1] / 5.0, rtol=1e-12, atol=1e-12)
    others = [h for h in range(patient.heads) if h != 1]
    assert torch.equal(treated[:, others], first[:, others])
    done.undo()
    assert torch.equal(Heard(patient).output, before.output)


def test_some_heads_by_number_are_clipped_like_all_in_a_list():
    clipped = []
    for tops in ([math.nan, 50.0, math.nan], {1: 50.0}):
        patient = built("multihead")
        remedies.qk_clip(
            patient.model, {patient.site: tops[: patient.heads] if isinstance(tops, list) else tops}, tau=10.0
        )
        clipped.append(output(patient))
    assert torch.equal(*clipped)
    assert not torch.equal(clipped[0], output(built("multihead")))
    code = Treatment("qk-clip", {patient.site: {1: 50.0}}, {patient.site: 10.0}).code()
    patient = built("multihead")
    eval(code, {"remedies": remedies, "model": patient.model})
    assert torch.equal(output(patient), clipped[0]), "the code of a prescription can be pasted"


def test_the_factor_is_halved_between_q_and_k_and_goes_to_q_alone_where_a_healthy_head_shares_the_key():
    patient = built("llama")
    attention = patient.model.get_submodule(patient.site)
    q, k = (linear.weight.detach().clone().unflatten(0, (-1, 8)) for linear in (attention.q_proj, attention.k_proj))
    remedies.qk_clip(patient.model, {patient.site: [1.0, 40.0, 20.0, 40.0]}, tau=10.0)
    new_q, new_k = (linear.weight.detach().unflatten(0, (-1, 8)) for linear in (attention.q_proj, attention.k_proj))
    torch.testing.assert_close(
        new_q / q, torch.tensor([1.0, 1 / 4, 0.5**0.5, 0.5**1.5]).double()[:, None, None].expand_as(q)
    )
    torch.testing.assert_close(new_k / k, torch.tensor([1.0, 0.5**0.5]).double()[:, None, None].expand_as(k))
    bias = attention.q_proj.bias.detach().clone()
    remedies.qk_clip(patient.model, {patient.site: [40.0, 1.0, 1.0, 1.0]}, tau=10.0)
    torch.testing.assert_close(attention.q_proj.bias[:8], bias[:8] / 4)


@pytest.mark.parametrize("tops", [[-3.0, 0.0, 99.9], [math.nan] * 3, [100.0] * 3])
def test_nothing_is_done_below_the_bound(tops):
    """A largest logit of 0 or less would make the factor infinite or negative."""
    patient = built("multihead")
    before = {name: value.clone() for name, value in patient.model.state_dict().items()}
    assert not remedies.qk_clip(patient.model, {patient.site: tops})
    assert all(torch.equal(value, before[name]) for name, value in patient.model.state_dict().items())


def test_the_keys_of_the_state_dict_stay_and_training_goes_on():
    patient = built("llama")
    names_before = list(patient.model.state_dict())
    optimizer = torch.optim.Adam(patient.model.parameters(), lr=1e-2)
    remedies.temperature(patient.model, {patient.site: {0: 2.0}}, way="weights")
    clip(patient, 1.0)
    assert list(patient.model.state_dict()) == names_before
    losses = []
    for _ in range(10):
        loss = patient.model(*patient.inputs, labels=patient.inputs[0]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.2


def test_a_clipped_head_stays_within_its_bound_whatever_the_weights() -> None:
    """Rounding must not push the largest logit back above tau; with a margin of 8 roundings it did."""
    x = 100 * torch.ones(1, 5, 8)
    for seed in range(60):
        torch.manual_seed(seed)
        model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        with remedies.largest_logits(model) as largest:
            model(x, x, x)
        remedies.qk_clip(model, largest, tau=1.0)
        with remedies.largest_logits(model) as largest:
            model(x, x, x)
        assert max(largest["MultiheadAttention"]) <= 1.0, seed


@pytest.mark.parametrize("low", [-1e4, -1e9, torch.finfo(torch.float32).min, -math.inf])
def test_a_hidden_key_is_not_measured_whatever_number_hides_it(low: float) -> None:
    """Padding has no logit to clip; a mask of −10000 or −1e9 used to let it in."""

    class Masked(torch.nn.Module):
        def forward(self, q, mask):
            return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    torch.manual_seed(0)
    q = torch.randn(1, 2, 6, 4)
    q[:, :, 3:] *= 50.0
    model, mask = Masked(), torch.tensor([0.0] * 3 + [low] * 3).expand(6, 6)
    with remedies.largest_logits(model) as largest:
        model(q, mask)
    wanted = (q @ q[:, :, :3].mT / 2.0).abs().amax(dim=(0, 2, 3))
    assert largest["Masked"] == pytest.approx(wanted.tolist(), rel=1e-6)
