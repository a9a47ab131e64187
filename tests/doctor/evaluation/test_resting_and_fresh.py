"""Heads that look sick but are not: parked on a sink, still uniform, or unscaled by design."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import softscope as ss
from softscope import tasks
from softscope.doctor.evaluation.corpus import VOCABULARY, text_batch
from softscope.doctor.judge.history_view import Head

from .models import LENGTH, Unscaled, WithSink, judged, language_model, letters, looked_at, named, states, watched


def test_a_head_on_the_first_token_rests() -> None:
    torch.manual_seed(0)
    found = watched(WithSink(), letters, steps=60)
    assert states(found) == ["resting", "learning", "learning", "learning"]
    assert found.view.states[Head(0, 0)].blocked > 0.5
    assert found.view.value("sink_column", Head(0, 0)) == 0
    assert named(found) == set()
    assert named(found, "informative") == {(0, 0)}


def test_a_head_on_a_learned_sink_rests() -> None:
    options = tasks.AttentionOptions(sink=25.0)
    model = tasks.SmallTransformer(VOCABULARY, length=LENGTH, d=64, heads=2, layers=1, options=options)
    found = watched(model, letters, steps=30)
    assert states(found) == ["resting", "resting"]
    assert found.view.value("sink_column", Head(0, 0)) == -1
    assert named(found) == set()


@pytest.mark.parametrize("loss", [True, False])
def test_uniform_heads_of_a_fresh_model(loss: bool) -> None:
    found = looked_at(language_model(gain=0.05), loss=loss)
    assert found.view.value("sharpness", Head(0, 0)) < 0.01
    assert named(found, "finding", "tip") == set()


@pytest.mark.parametrize("loss", [True, False])
def test_unscaled_as_t5_is_judged_by_its_readings(loss: bool) -> None:
    torch.manual_seed(0)
    healthy, broken = looked_at(Unscaled(), loss=loss), looked_at(Unscaled(d=1024, smaller=False), loss=loss)
    assert healthy.view.history.sites[0].scale == broken.view.history.sites[0].scale == 1.0
    assert named(healthy, "finding", "tip") == set()
    assert "SS005" in broken.of("tip"), "only a trial shows harm"
    assert not broken.of("finding")


def test_t5_itself() -> None:
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers to test T5 itself")
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    model = transformers.T5ForConditionalGeneration(config)
    update, generator = torch.optim.Adam(model.parameters(), 1e-3), torch.Generator().manual_seed(0)
    with ss.probe(model, every=5) as scope:
        for _ in range(40):
            batch = text_batch(4, length=64, generator=generator)
            update.zero_grad()
            model(input_ids=batch.tokens, labels=batch.target.contiguous()).loss.backward()
            update.step()
    found = judged(scope)
    assert len(found.view.history.sites) == 6  # encoder, decoder and cross-attention
    assert named(found, "finding", "tip") == set()
    assert set(states(found)) == {"learning"}
