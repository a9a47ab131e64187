"""Steps are detected automatically, however the loop is written; you can also mark them yourself."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch
from torch import nn

import softscope as ss
from softscope.doctor.listen.sampling import choose_rows, default_schedule
from softscope.doctor.read.snapshot import FORWARD, GRADIENT

from ..patients import stack, tokens


def steps(scope: Any) -> list[int]:
    return [snapshot.step for snapshot in scope.history().snapshots]


def test_accumulated_passes_are_one_step() -> None:
    model = stack("fused")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model, max_rows=None) as scope:
        for _ in range(3):
            for _ in range(4):
                model(tokens()).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert steps(scope) == [0, 1, 2]


def test_accumulated_passes_say_what_the_whole_batch_says() -> None:
    model = stack("fused").eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x = torch.randn(8, 40, 16)
    read = []
    for parts in (1, 4):
        with ss.probe(model, max_rows=None) as scope:
            for part in x.chunk(parts):
                ((model(part) ** 2).sum() / x.numel()).backward()
            optimizer.step()
        read.append(scope.history().snapshots)
        assert len(read[-1]) == 1
    whole, split = (found[0].readings for found in read)
    assert whole.keys() == split.keys()
    for name in whole:
        torch.testing.assert_close(torch.tensor(whole[name]), torch.tensor(split[name]), rtol=1e-4, atol=1e-6,
                                   equal_nan=True)  # fmt: skip


def test_parameters_that_are_written_through_data() -> None:
    """No version counter sees these writes, and there is no PyTorch optimizer to listen to."""
    model = stack("fused")
    with ss.probe(model, every=1) as scope:
        for _ in range(3):
            for _ in range(2):
                model(tokens()).mean().backward()
            for p in model.parameters():
                if p.grad is not None:
                    p.data.sub_(0.01 * p.grad)
                    p.grad = None
    assert steps(scope) == [0, 1, 2]


def test_two_passes_with_one_loss() -> None:
    model = stack("fused")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model, max_rows=None) as scope:
        for _ in range(4):
            optimizer.zero_grad()
            (model(tokens()).mean() + model(-tokens()).mean()).backward()
            optimizer.step()
    history = scope.history()
    assert not history.unseen
    assert all(snapshot.has_loss for snapshot in history.snapshots)
    assert steps(scope) == [0, 1, 2, 3]


def test_a_loop_without_an_optimizer() -> None:
    model = stack("fused")
    with ss.probe(model) as scope:
        for _ in range(3):
            model(tokens()).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
    assert steps(scope) == [0, 1, 2]


def test_validation_between_steps_belongs_to_none() -> None:
    model = stack("fused")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model) as scope:
        for _ in range(3):
            model(tokens()).mean().backward()
            with torch.no_grad():
                model(tokens(30))
            optimizer.step()
    assert steps(scope) == [0, 1, 2]
    assert all(snapshot.has_loss for snapshot in scope.history().snapshots)


def test_each_forward_pass_of_inference_is_one() -> None:
    model = stack("fused")
    with ss.probe(model) as scope:
        for _ in range(2):
            model(tokens())
        with torch.no_grad():
            model(tokens())
    assert steps(scope) == [0, 1, 2]
    assert not any(snapshot.has_loss for snapshot in scope.history().snapshots)


def test_marks() -> None:
    model = stack("fused")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    heard: list[Any] = []
    with ss.probe(model, every=2) as scope:
        scope.on_snapshot(heard.append)
        for _ in range(5):
            loss = model(tokens()).mean()
            loss.backward()
            optimizer.step()
            scope.step(loss=loss)
    assert steps(scope) == [0, 2, 4] == [snapshot.step for snapshot in heard]
    assert heard[-1].loss == pytest.approx(loss.item())
    assert all(snapshot.has_loss for snapshot in heard)


def test_a_loss_is_asked_for_its_number_only_where_it_is_read() -> None:
    """On a GPU that waits for the whole step."""

    class Loss:
        asked = 0

        def __float__(self) -> float:
            Loss.asked += 1
            return 0.5

    model = stack("fused")
    with ss.probe(model, every=4) as scope:
        for _ in range(8):
            model(tokens()).mean().backward()
            scope.step(loss=Loss())
    assert [snapshot.loss for snapshot in scope.history().snapshots] == [0.5, 0.5]
    assert Loss.asked == 2


def test_default_sampling_thins_out() -> None:
    read = [step for step in range(3000) if default_schedule(step)]
    assert read[:10] == list(range(10))
    assert len([step for step in read if step < 1000]) < 60
    assert max(b - a for a, b in itertools.pairwise(read)) == 50


def test_chosen_rows() -> None:
    rng, seen = random.Random(0), set()
    for _ in range(200):
        rows = choose_rows(8, 31, 100, rng)
        assert rows is not None
        assert len(set(rows)) == 8
        assert rows == sorted(rows)
        seen |= set(rows)
    assert seen == set(range(31, 100))
    assert choose_rows(8, 0, 8, rng) is None
    assert choose_rows(None, 0, 100, rng) is None


def test_all_names_are_read() -> None:
    model = stack("fused")
    with ss.probe(model) as scope:
        model(tokens()).mean().backward()
    (snapshot,) = scope.history().snapshots
    assert {*FORWARD, *GRADIENT} <= snapshot.readings.keys()
    assert {"sharpness:median", "transmission:p05", "advantage:p95"} <= snapshot.readings.keys()
    assert all(a.shape == (2, 2) and a.dtype == "float32" for a in snapshot.readings.values())
    assert scope.history().series("sharpness").shape == (1, 2, 2)


def test_the_passes_that_lbfgs_makes_are_one_step() -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    x = torch.randn(2, 5, 8)
    passes = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x, x, x)[0].square().mean()
        loss.backward()
        passes.append(1)
        return loss

    with ss.probe(model, every=1) as scope:
        for _ in range(3):
            optimizer.step(closure)
    assert len(passes) > 3
    assert [snapshot.step for snapshot in scope.history().snapshots] == [0, 1, 2]


@pytest.mark.parametrize("grad", [False, True])
def test_a_validation_before_the_first_step_is_no_step(grad: bool) -> None:
    model = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(2, 5, 8)
    with ss.probe(model, every=1) as scope:
        for _ in range(2):
            with torch.set_grad_enabled(grad):
                model.eval()(x)
        assert len(scope.history().snapshots) >= 1, "as long as nobody trains, it is inference"
        for _ in range(3):
            optimizer.zero_grad()
            model.train()(x).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                model.eval()(x)
    assert [snapshot.step for snapshot in scope.history().snapshots] == [0, 1, 2]
    assert all(snapshot.has_loss for snapshot in scope.history().snapshots)
