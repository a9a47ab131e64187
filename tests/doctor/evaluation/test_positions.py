"""Heads trained to read by position: sharp, with no advantage, and nothing wrong with them."""

from __future__ import annotations

import pytest
import torch

from softscope import tasks
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.evaluation.corpus import TextBatch

from ..judge.histories import without
from .models import named, states, watched


def previous(generator: torch.Generator) -> TextBatch:
    """Ask for the previous token. Half of the answers are random, so the loss never dies out."""
    tokens = torch.randint(16, (16, 32), generator=generator)
    target = torch.full_like(tokens, tasks.IGNORED)
    noise = torch.rand(tokens.shape, generator=generator) < 0.5
    target[:, 1:] = torch.where(noise, torch.randint(16, (16, 32), generator=generator), tokens)[:, :-1]
    return TextBatch(tokens, target)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_previous_token_head(seed: int) -> None:
    model = tasks.SmallTransformer(16, length=32, d=64, heads=1, layers=1, seed=seed)
    found = watched(model, previous, steps=300, rate=3e-3, every=20)
    assert states(found) == ["positional"]
    assert named(found, "finding", "tip") == set()
    (state,) = found.view.states.values()
    assert state.blocked > 0.1
    # Without the offsets this head would be suspected: that is why they are read.
    blind = diagnose(without(found.view.history, "blocked_offset_mass"))
    assert states(blind) == ["suspected"]


def test_copying_heads() -> None:
    model = tasks.SmallTransformer(17, length=32, d=64, heads=2, layers=2)
    batches = lambda g: tasks.copy_batch(16, length=16, vocabulary=16, generator=g)  # noqa: E731
    found = watched(model, batches, steps=200, rate=4e-3, every=20)
    assert set(states(found)) <= {"right", "learning", "positional"}
    assert "positional" in states(found)
    assert named(found, "finding", "tip") == set()
