"""Readings of models whose state is known: stuck, right, right under noise, and solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from softscope import tasks


def trained(steps: int, learning_rate: float = 3e-4, noise: float = 0.0, **options: Any) -> tuple[Any, float]:
    torch.set_num_threads(1)
    model = tasks.RecallModel(d=256, vocabulary=16, options=tasks.AttentionOptions(**options))

    def batches(generator: torch.Generator) -> Any:
        return tasks.recall_batch(32, pairs=16, noise=noise, generator=generator)

    with ss.probe(model, every=10) as scope:
        history = tasks.train(model, batches, steps=steps, learning_rate=learning_rate)
    found = scope.history()
    assert not found.unseen
    assert found.sites[0].scale == (1.0 if options else 1 / 16)
    return {name: found.series(name)[:, 0, 0] for name in found.snapshots[0].readings}, history.recent_accuracy(10)


def test_unscaled_is_stuck() -> None:
    read, accuracy = trained(61, learning_rate=1e-3, scale=1.0)
    assert accuracy < 0.5
    assert read["blocked"][0] > 0.3  # from the first step
    assert (read["blocked"][2:] > 0.9).all()
    assert (read["advantage"] + 2.0 * read["advantage_error"] < 0.5).all()
    assert (read["blocked_mass"] < 0.6).all()
    assert (read["max_logit"] > 30.0).all()


def test_scaled_learns_and_is_right() -> None:
    read, accuracy = trained(81)
    assert accuracy == 1.0
    assert read["blocked"][0] == 0.0
    assert abs(read["advantage"][0]) < 0.3
    assert read["blocked"][-1] > 0.1
    assert (read["advantage"] - 2.0 * read["advantage_error"])[-3:].min() > 1.0


def test_right_under_noise() -> None:
    read, accuracy = trained(41, learning_rate=1e-3, noise=0.3)
    assert accuracy > 0.9
    assert read["blocked"][-1] > 0.5
    assert (read["advantage"] - 2.0 * read["advantage_error"])[-2:].min() > 0.5


def test_a_solved_task_is_not_judged_by_rounding() -> None:
    read, _ = trained(101, learning_rate=1e-3)
    late = read["advantage"][6:]
    assert read["demand"][-1] < 1e-5 * read["demand"][0]  # all that is left of the mean gradient is rounding error
    assert not (late < 1.0).any()  # rows with demand left say it is right; without any, this would be NaN
    assert np.isfinite(read["sharpness"]).all()


@pytest.mark.parametrize("sink", [None, 0.0])
def test_copying_heads_are_read(sink: float | None) -> None:
    options = tasks.AttentionOptions(sink=sink)
    model = tasks.SmallTransformer(vocabulary=9, length=24, d=32, heads=2, layers=2, options=options)
    with ss.probe(model) as scope:
        tasks.train(model, lambda g: tasks.copy_batch(8, length=12, vocabulary=8, generator=g), steps=3)
    history = scope.history()
    assert [site.name for site in history.sites] == ["blocks.0.attention", "blocks.1.attention"]
    assert all(site.causal for site in history.sites)
    assert {site.kind for site in history.sites} == {"sdpa" if sink is None else "softscope"}
    assert np.isfinite(history.series("transmission")).all()
    assert (history.series("blocked") == 0.0).all()
