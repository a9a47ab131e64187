"""Trying heads: what an intervention does to a model, that it leaves no trace, and what it tells of heads we know."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from doctor.judge.histories import RIGHT, STUCK, history, per_head
from doctor.judge.histories import trial as tried
from doctor.patients import Projected, Stack
from doctor.treat.models import ALL, built, output
from softscope._text import LANGS, Text
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.judge.history_view import Head
from softscope.doctor.read.effect import Effect
from softscope.doctor.read.head_trial import HeadTrial
from softscope.doctor.report import lines, page
from softscope.doctor.treat import remedies
from softscope.doctor.trial.head_trial import parts_of, try_heads
from softscope.doctor.trial.intervention import FUSED, NO_CALL, Intervention, Spreads
from softscope.doctor.trial.untouched import untouched


@pytest.mark.parametrize("temperature", [5.0, math.inf])
@pytest.mark.parametrize("name", ALL)
def test_an_intervention_does_what_a_temperature_in_the_weights_does(name: str, temperature: float) -> None:
    """W_Q of the head, divided by T, is the independent way; at infinity it is 0, and the head uniform."""
    patient = built(name)
    with untouched(patient.model):
        plain = output(patient).detach().clone()
        change = Intervention(patient.model, patient.site, 1, temperature)
        with change.on():
            found = output(patient).detach().clone()
    assert change.done > 0
    remedies.temperature(patient.model, {patient.site: {1: min(temperature, 1e30)}}, way="weights")
    with untouched(patient.model):
        wanted = output(patient).detach()
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-11)
    assert (found - plain).abs().max() > 1e-7


def handwritten(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    hidden = torch.ones(q.shape[-2], k.shape[-2]).tril() == 0
    return torch.softmax((q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -1e4), dim=-1) @ v


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    hidden = torch.zeros(q.shape[-2], k.shape[-2]).masked_fill(torch.ones(q.shape[-2], k.shape[-2]).tril() == 0, -1e9)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=hidden)


@pytest.mark.parametrize("mix", [handwritten, sdpa])
def test_a_uniform_head_averages_the_values_it_may_see(mix: Any) -> None:
    torch.manual_seed(0)
    model, x = Projected(mix).double(), torch.randn(2, 7, 16, dtype=torch.float64)
    v = model.qkv(x).chunk(3, dim=-1)[2].unflatten(-1, (2, -1)).transpose(1, 2)
    heads = mix(*(y.unflatten(-1, (2, -1)).transpose(1, 2) for y in model.qkv(x).chunk(3, dim=-1)))
    heads = heads.clone()
    heads[:, 1] = v[:, 1].cumsum(dim=1) / torch.arange(1, 8)[:, None]
    with torch.no_grad(), Intervention(model, "Projected", 1, math.inf).on():
        found = model(x)
    torch.testing.assert_close(found, model.out(heads.transpose(1, 2).flatten(-2)))


def test_the_spread_is_that_of_the_visible_logits() -> None:
    torch.manual_seed(0)
    model, x = Projected(handwritten).double(), torch.randn(2, 7, 16, dtype=torch.float64)
    spreads = Spreads(model)
    with torch.no_grad(), spreads.on():
        model(x)
    q, k, _ = (y.unflatten(-1, (2, -1)).transpose(1, 2) for y in model.qkv(x).chunk(3, dim=-1))
    logits = (q @ k.mT * 8**-0.5).detach().numpy()
    for head in range(2):
        wanted = np.mean([[row[: i + 1].std() for i, row in enumerate(rows[head])] for rows in logits])
        assert spreads.of("Projected", head) == pytest.approx(wanted)


class Noisy(nn.Module):
    """Dropout, and buffers that every training pass changes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = Stack(lambda: Projected(sdpa))
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1.0  # in eval mode, too
        noise = torch.from_numpy(np.random.rand(1)).float() + random.random() + torch.rand(1)  # noqa: NPY002
        return self.norm(self.layers(x).mean(dim=1)) + 1e-3 * noise


def test_a_run_with_trials_is_the_same_run_bit_for_bit() -> None:
    def run(with_trials: bool) -> tuple[Any, ...]:
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        model = Noisy().train()
        calls: list[int] = []
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        x = torch.randn(8, 6, 16)
        with ss.probe(model, every=1) as scope:
            for step in range(4):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                if with_trials and step % 2:
                    found = scope.trial(x, loss=lambda y, _: y.square().mean(), heads={"layers.layers.0": [0, 1]})
                    assert all(isinstance(trial, HeadTrial) for trial in found.values())
                    assert all(module.training for module in model.modules())
                optimizer.step()
                calls.append(len(scope.history().snapshots))
        readings = [s.readings for s in scope.history().snapshots]
        state = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
        return state, readings, calls, torch.get_rng_state(), random.random(), np.random.rand()  # noqa: NPY002

    plain, tried = run(False), run(True)
    for a, b in zip(plain[0][0].values(), tried[0][0].values(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(plain[1], tried[1], strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    assert plain[2] == tried[2]
    assert torch.equal(plain[3], tried[3])
    assert plain[4:] == tried[4:]


class Lookup(nn.Module):
    """Two heads: the first reads the key the query asks for, the second reads key 0 whatever is asked."""

    def __init__(self, sharp: float) -> None:
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(sharp))

    def forward(self, x: Tensor) -> Tensor:
        keys = torch.eye(16).expand(x.shape[0], 1, 16, 16)
        first, second = torch.eye(16)[x][:, None], torch.eye(16)[torch.zeros_like(x)][:, None]
        q = torch.cat([first, second], dim=1) * self.sharp * 4
        out = functional.scaled_dot_product_attention(q, keys.expand(-1, 2, -1, -1), keys.expand(-1, 2, -1, -1))
        return out[:, 0] - 0.0 * out[:, 1]


def test_a_head_that_is_needed_is_useful_and_one_that_is_ignored_costs_nothing() -> None:
    x = torch.randint(0, 16, (32, 5), generator=torch.Generator().manual_seed(0))

    def loss(y: Tensor, batch: Tensor) -> Tensor:
        return functional.cross_entropy(8.0 * y.flatten(0, 1), batch.flatten())

    found = try_heads(Lookup(20.0), x, {"Lookup": [0, 1], "nowhere": [0]}, loss=loss)
    first, second = found["Lookup", 0], found["Lookup", 1]
    assert isinstance(first, HeadTrial)
    assert isinstance(second, HeadTrial)
    assert first.useful
    assert not first.better_softer
    assert first.uniform.change == pytest.approx(math.log(16) - first.loss, rel=1e-3)
    assert second.uniform == second.softened == second.slope == Effect(0.0, 0.0, 16)
    assert second.verdict == "idle"
    assert found["nowhere", 0] == NO_CALL


def test_a_head_that_is_stuck_on_wrong_keys_is_better_softer() -> None:
    """It reads the next key instead of the one it is asked for, and is nearly sure of it."""
    x = torch.randint(0, 16, (32, 5), generator=torch.Generator().manual_seed(0))

    def loss(y: Tensor, batch: Tensor) -> Tensor:
        return functional.cross_entropy(8.0 * y.flatten(0, 1), (batch.flatten() + 1) % 16)

    (trial,) = try_heads(Lookup(20.0), x, {"Lookup": [0]}, loss=loss).values()
    assert isinstance(trial, HeadTrial)
    assert not trial.useful
    assert trial.better_softer


def test_one_row_has_no_standard_error_and_decides_nothing() -> None:
    x = torch.zeros(1, 5, dtype=torch.int64)
    (trial,) = try_heads(Lookup(20.0), x, {"Lookup": [0]}, loss=lambda y, _: -y[..., 0].mean()).values()
    assert isinstance(trial, HeadTrial)
    assert (trial.parts, trial.useful, trial.better_softer) == (1, False, False)
    assert trial.uniform.change > 0.9


@pytest.mark.parametrize(
    ("trial", "state"),
    [
        (tried((0.5, 0.1), (-0.3, 0.1)), "useful"),  # the model needs it, whatever else would help
        (tried((0.0, 0.1), (-0.3, 0.1)), "starving"),
        (tried((0.15, 0.1), (-0.3, 0.1)), "suspected"),  # it may be of use
        (tried((0.001, 0.005), (-0.011, 0.005)), "starving"),  # of little use at most, and better softer
        (tried((0.0, 0.005), (0.0, 0.1), (-0.3, 0.1)), "starving"),  # it would learn if it could
        (tried((0.01, 0.1), (0.0, 0.1), (-0.3, 0.1)), "suspected"),  # it would, but it may be of use
        (tried((0.002, 0.002), (0.0, 0.01)), "idle"),
        (tried((0.002, 0.002), (0.0, 0.01), (-0.1, 0.1)), "idle"),
        (tried((0.1, 0.1), (0.0, 0.1)), "suspected"),  # not clear enough to lift the suspicion, or to confirm it
        (FUSED, "suspected"),
    ],
)
def test_a_trial_decides_about_a_head_that_the_readings_suspect(trial: HeadTrial | Text, state: str) -> None:
    known = history(**per_head(0, STUCK))
    place = (known.sites[0].name, 0)
    assert diagnose(known).view.states[Head(0, 0)].state == "suspected"
    diagnosis = diagnose(known, trials={place: trial})
    assert diagnosis.view.states[Head(0, 0)].state == state
    assert ("SS001" in diagnosis.of("finding")) == diagnosis.fails("finding") == (state == "starving")
    assert ("SS013" in diagnosis.of("tip")) == (state == "suspected")
    for lang in LANGS:
        assert diagnosis.verdict.of(lang)
        assert all(line.text is not None for line in lines(diagnosis, lang))
        assert page([diagnosis], lang)
    if state == "starving" and isinstance(trial, HeadTrial):
        (finding,) = diagnosis.of("finding")["SS001"]
        assert "made uniform, the loss changes by" in finding.says.en


def test_a_trial_changes_nothing_about_a_head_that_is_not_suspected() -> None:
    known = history(**per_head(0, RIGHT))
    place = (known.sites[0].name, 0)
    diagnosis = diagnose(known, trials={place: tried((0.0, 0.001), (-1.0, 0.1))})
    assert diagnosis.view.states[Head(0, 0)].state == "right"


def test_a_list_of_batches_is_cut_like_one() -> None:
    assert len(parts_of(torch.ones(32, 2))) == 16
    assert len(parts_of([torch.ones(12, 2)] * 3)) == 18
    assert len(parts_of(torch.ones(5, 2))) == 4
    assert len(parts_of([torch.ones(1, 2)] * 3)) == 3


def test_key_heads_that_are_shared_in_one_part_and_repeated_in_the_next() -> None:
    """Transformers repeats shared key heads only under a mask, and only some parts of a batch have padding."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    tokens = torch.randint(20, (16, 12))
    shown = torch.ones_like(tokens)
    shown[:8, 9:] = 0
    with ss.probe(model) as scope:
        found = scope.trial(
            {"input_ids": tokens, "attention_mask": shown, "labels": tokens}, heads={"model.layers.0.self_attn": [0, 3]}
        )
    assert [type(trial).__name__ for trial in found.values()] == ["HeadTrial"] * 2
