"""Remedies are tried before they are prescribed: against no treatment, on what is held out, without a trace."""

from __future__ import annotations

import copy
import dataclasses
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from doctor.treat.handwritten import HEADS, SIZE, D, Packed, in_thirds
from doctor.trial.test_trial import Noisy
from softscope import tasks
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.judge.history_view import Head
from softscope.doctor.treat import remedies
from softscope.doctor.treat.prescriptions import Prescription
from softscope.doctor.treat.treatment import Treatment
from softscope.doctor.treat.wordings import starving
from softscope.doctor.trial.remedy_trial import _Result, _Trying, try_plans
from softscope.doctor.trial.short_training import Borrowed, resumed, steps


class Recall(nn.Module):
    """The recall model, with the answers as its last argument, so that a batch is one tuple."""

    def __init__(self, d: int, **options: Any) -> None:
        super().__init__()
        made = tasks.AttentionOptions(**options)
        self.inner = tasks.RecallModel(
            d, vocabulary=16, heads=max(1, d // 64) if "init_gain" in options else 1, options=made
        )

    def forward(self, keys: Tensor, values: Tensor, query: Tensor, _: Tensor) -> Tensor:
        found: Tensor = self.inner(keys, values, query)
        return found


def recall(rows: int, seed: int) -> tuple[Tensor, ...]:
    made = tasks.recall_batch(rows, pairs=16, generator=torch.Generator().manual_seed(seed))
    return (*made.inputs, made.target)


def loss(output: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
    return functional.cross_entropy(output.flatten(0, -2), batch[-1].flatten())


def trained(model: nn.Module, steps: int, rate: float = 3e-4, first: int = 0) -> tuple[Any, Any, list[float]]:
    torch.set_num_threads(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    with ss.probe(model, every=1 if steps < 20 else 5, max_rows=None) as scope:
        for step in range(steps):
            batch = recall(16, first + step)
            optimizer.zero_grad()
            found = loss(model(*batch), batch)
            found.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            scope.step(loss=found)
            losses.append(float(found.detach()))
    return scope, optimizer, losses


def blocked_shares(model: nn.Module) -> Any:
    with ss.probe(model, every=1, max_rows=None) as scope:
        for seed in range(3):
            batch = recall(16, 5000 + seed)
            loss(model(*batch), batch).backward()  # type: ignore[no-untyped-call]
            scope.step()
    model.zero_grad()
    return scope.history().series("blocked").mean(axis=0)[0]


def test_a_model_without_a_scale_gets_what_was_measured_to_help() -> None:
    model = Recall(256, scale=1.0)
    scope, optimizer, _ = trained(model, 40)
    state = copy.deepcopy(model.state_dict())
    (given,) = scope.prescribe(recall(128, 1000), loss=loss, optimizer=optimizer)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    tried = given.tried
    assert tried is not None
    assert tried.helps
    assert tried.steps == 20
    assert tried.treated < 0.8 * tried.untreated  # Adam goes on with the moments of a stuck head, which slows it
    assert tried.passes > 10
    assert {"temperature", "QK-clip"} & {word for one in tried.others for word in one.name.en.split()}
    assert "after 20 steps; untreated" in tried.said.en
    twin = copy.deepcopy(model)
    done = given.apply(model)
    assert max(blocked_shares(model)) < 0.1, "it can learn now"
    exec("from softscope.doctor import remedies\n" + given.treatment.code(), {"model": twin})
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in twin.state_dict().items())
    assert done.kept.zh
    _, _, losses = trained(model, 40, first=2000)
    assert losses[-1] < 0.5, losses


def test_q_and_k_times_8_are_better_drawn_anew_than_cooled() -> None:
    model = Recall(128, init_gain=8.0)
    scope, optimizer, _ = trained(model, 9)
    given = scope.prescribe(recall(192, 1000), loss=loss, optimizer=optimizer)
    assert all(one.tried is not None for one in given if one.candidates)
    best = given[0]
    assert best.treatment is not None
    assert best.treatment.remedy in ("reinitialise", "qk-clip")
    assert best.tried is not None
    assert any("temperature" in one.name.en for one in best.tried.others)
    for one in given:
        one.apply(model) if one.treatment is not None else None
    shares = blocked_shares(model)
    assert all(shares[head.head] < 0.1 for one in given if one.treatment is not None for head in one.heads)


def plan(*candidates: Treatment, freed: bool = False) -> Prescription:
    heads = tuple(Head(0, head) for doses in candidates[0].heads.values() for head in doses)
    return dataclasses.replace(starving(heads), candidates=candidates, treatment=candidates[0], freed=freed)


def test_what_does_not_help_is_not_prescribed_but_listed() -> None:
    model = Recall(64)
    trained(model, 60, rate=3e-3)
    hot = Treatment("temperature", {"inner.attention": {0: 1000.0}})
    lost = Treatment("temperature", {"inner.attention#2": {0: 3.0}})
    (given,) = try_plans(model, [plan(hot, lost)], recall(128, 1000), loss=loss)
    assert given.remedy == "none"
    assert given.treatment is None
    assert given.tried is not None
    assert not given.tried.helps
    assert [one.name.en for one in given.tried.others] == ["temperature 1e+03", "temperature 3"]
    assert "called several times" in given.tried.others[1].why.en
    with pytest.raises(remedies.NotSupportedError, match="nothing that was tried lowers the loss"):
        given.apply(model)


def test_a_dose_that_leaves_the_head_frozen_is_not_prescribed() -> None:
    model = Recall(256, scale=1.0)
    small, large = (Treatment("temperature", {"inner.attention": {0: dose}}) for dose in (1.5, 20.0))
    (given,) = try_plans(model, [plan(small, large, freed=True)], recall(128, 1000), loss=loss)
    assert given.treatment == large
    assert given.tried is not None
    assert "rows stay blocked" in given.tried.others[0].why.en


def test_the_second_prescription_is_tried_with_the_first_in_force() -> None:
    """Both treat the same fault: once the first has removed it, the second has nothing to gain."""
    model = Recall(256, scale=1.0)
    once = Treatment("temperature", {"inner.attention": {0: 20.0}})
    again = Treatment("temperature", {"inner.attention": {0: 1.0001}})
    first, second = try_plans(model, [plan(once), plan(again)], recall(128, 1000), loss=loss)
    assert first.treatment == once
    assert second.remedy == "none"
    assert second.tried is not None
    assert second.tried.untreated == pytest.approx(first.tried.treated if first.tried else 0.0)


def test_parts_to_train_on_and_parts_to_judge_by_are_disjoint_and_the_same_for_all() -> None:
    model = Recall(64, scale=1.0)
    seen: dict[bool, list[int]] = {True: [], False: []}
    batch = recall(64, 1000)
    rows = {tuple(row.tolist()): i for i, row in enumerate(batch[0])}

    def watching(output: Tensor, part: tuple[Tensor, ...]) -> Tensor:
        seen[output.requires_grad].extend(rows[tuple(row.tolist())] for row in part[0])
        return loss(output, part)

    doses = [Treatment("temperature", {"inner.attention": {0: dose}}) for dose in (8.0, 9.0)]
    try_plans(model, [plan(*doses)], batch, loss=watching, steps=8)
    assert seen[True]
    assert not set(seen[True]) & set(seen[False])
    third = len(seen[True]) // 3
    assert seen[True][:third] == seen[True][third : 2 * third] == seen[True][2 * third :]


def test_one_row_cannot_be_tried() -> None:
    model = Recall(64, scale=1.0)
    (given,) = try_plans(
        model, [plan(Treatment("temperature", {"inner.attention": {0: 8.0}}))], recall(1, 0), loss=loss
    )
    assert given.tried is None
    assert given.treatment is not None
    assert given.standing is not None
    assert given.standing.en == "not tried: one row has no standard error"


def test_without_a_gradient_the_losses_are_compared_at_once() -> None:
    model = Recall(256, scale=1.0).requires_grad_(False)
    (given,) = try_plans(
        model, [plan(Treatment("temperature", {"inner.attention": {0: 40.0}}))], recall(256, 1000), loss=loss
    )
    assert given.tried is not None
    assert (given.tried.after, given.tried.steps) == (None, 0)
    assert given.tried.said.en.endswith("at once") or not given.tried.helps


def test_a_run_with_remedies_tried_is_the_same_run_bit_for_bit() -> None:
    def run(trying: bool) -> tuple[Any, ...]:
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        model = Noisy().train()
        stepped: list[int] = []
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer.register_step_post_hook(lambda *_: stepped.append(1))
        x = torch.randn(16, 6, 16)
        counts = []
        doses = {"layers.layers.0": {0: 3.0}}
        wanted = [plan(Treatment("temperature", doses)), plan(Treatment("qk-clip", doses, {"layers.layers.0": 1.0})),
                  plan(Treatment("reinitialise", doses))]  # fmt: skip
        accumulated: list[int] = []
        next(model.parameters()).register_post_accumulate_grad_hook(lambda _: accumulated.append(1))
        with ss.probe(model, every=1) as scope:
            for step in range(4):
                optimizer.zero_grad()
                found = model(x).square().mean()
                if trying and step % 2:  # between forward and backward pass: the graph must stay valid
                    scope._paused = True
                    tried = try_plans(
                        model, wanted, x, loss=lambda y, _: y.square().mean(), optimizer=optimizer, steps=3
                    )
                    scope._paused = False
                    assert [one.tried is not None for one in tried] == [True] * 3
                found.backward()
                optimizer.step()
                counts.append(len(scope.history().snapshots))
        readings = [s.readings for s in scope.history().snapshots]
        state = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
        grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        left = [name for module in model.modules() for name in (*module._forward_hooks, *module._forward_pre_hooks)]
        return state, readings, counts, stepped, accumulated, grads, left, torch.get_rng_state(), random.random()

    plain, tried = run(False), run(True)
    for a, b in zip(plain[0][0].values(), tried[0][0].values(), strict=True):
        assert torch.equal(a, b)
    for one, other in zip(plain[0][1].values(), tried[0][1].values(), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    for a, b in zip(plain[1], tried[1], strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    assert plain[2:5] == tried[2:5]
    assert all(torch.equal(a, b) for a, b in zip(plain[5], tried[5], strict=True))
    assert plain[6] == tried[6]
    assert torch.equal(plain[7], tried[7])
    assert plain[8] == tried[8]


def test_everything_is_put_back_even_if_the_model_raises() -> None:
    model = Recall(64, scale=1.0)
    state = copy.deepcopy(model.state_dict())
    calls = 0

    def failing(output: Tensor, batch: Any) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise RuntimeError("no more")
        return loss(output, batch)

    with pytest.raises(RuntimeError, match="no more"):
        try_plans(model, [plan(Treatment("temperature", {"inner.attention": {0: 8.0}}))], recall(64, 0), loss=failing)
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_hand_written_attention_is_drawn_anew_where_its_numbers_come_from() -> None:
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.out = Packed(in_thirds), nn.Linear(D, 1)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.out(self.attention(x)[:, -1])
            return found

    torch.manual_seed(0)
    model = Pooled()
    with torch.no_grad():
        model.attention.everything.weight[: HEADS * SIZE] *= 100.0
    x = torch.randn(64, 9, D)

    def third(y: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
        return (y - batch[0][:, 3].sum(dim=-1, keepdim=True) / D**0.5).square().mean()

    doses = {"attention": dict.fromkeys(range(HEADS), 1.0)}
    (given,) = try_plans(model, [plan(Treatment("reinitialise", doses), freed=True)], (x,), loss=third, steps=5)
    assert given.tried is not None
    assert "not supported" not in (given.tried.also.en if given.tried.also else "")


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad])
def test_the_steps_go_on_where_the_optimizer_is(kind: Any) -> None:
    """A new Adam would move every weight by the whole rate, and wreck a trained model before the remedy can show."""
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    model = nn.Linear(4, 1)
    optimizer = kind(model.parameters(), lr=1e-2, **options)
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    for _ in range(5):
        model(x).square().mean().backward()
        optimizer.step()
    mine, before = copy.deepcopy((model, optimizer)), copy.deepcopy(optimizer.state_dict())
    with Borrowed(model):
        assert steps(resumed(optimizer, model), iter([lambda: model(x).square().mean()] * 2), 2)
        got = [p.detach().clone() for p in model.parameters()]
    for _ in range(2):
        mine[1].zero_grad()
        mine[0](x).square().mean().backward()
        mine[1].step()
    assert all(torch.equal(a, b) for a, b in zip(got, mine[0].parameters(), strict=True))
    for one, other in zip(before["state"].values(), optimizer.state_dict()["state"].values(), strict=True):
        assert all(torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one)


def test_adamw_and_third_party_factories_are_taken() -> None:
    model = Recall(64, scale=1.0)
    wanted = [plan(Treatment("temperature", {"inner.attention": {0: 8.0}}))]
    optimizers: list[Any] = [
        None, lambda some: torch.optim.SGD(some, lr=0.1), torch.optim.AdamW(model.parameters(), lr=1e-3),
        torch.optim.SGD([{"params": list(model.parameters()), "lr": 0.1}], lr=0.3, momentum=0.9),
    ]  # fmt: skip
    for optimizer in optimizers:
        (given,) = try_plans(model, wanted, recall(64, 0), loss=loss, optimizer=optimizer, steps=3)
        assert given.tried is not None
    assert all(not one.state for one in optimizers[2:])


def test_a_diagnosis_needs_no_trial_to_name_candidates() -> None:
    scope, _, _ = trained(Recall(256, scale=1.0), 20)
    (given,) = diagnose(scope.history()).prescriptions
    assert given.tried is None
    assert given.standing is not None
    assert "not tried" in given.standing.en


@pytest.mark.parametrize(("after", "helps"), [(-0.2, False), (-2.0, True)])
def test_what_costs_at_once_must_gain_more_than_it_costs(after: float, helps: bool) -> None:
    """At a high rate a few steps go up or down by chance: a head that was in use was drawn anew for 0.2 nats."""
    trying = _Trying(nn.Linear(2, 1), torch.randn(8, 2), lambda y, _: y.mean(), None, 20, lambda _: None)
    base = _Result([3.0, 3.1, 3.0, 3.1] * 8, [3.0, 3.1, 3.0, 3.1] * 8)
    noise = [0.01, -0.01] * 16
    result = _Result(
        [x + 0.5 + e for x, e in zip(base.now, noise, strict=True)],
        [x + after + e for x, e in zip(base.now, noise, strict=True)],
    )
    assert trying._compared(base, result, 1).helps is helps
