"""1/√d may be part of q, as in Whisper: what counts is the number between q·k and the logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import softscope as ss
from softscope.doctor.diagnosis import diagnose

from ..patients import Projected, pytest_transformers, tokens


def read(mix: Any) -> Any:
    torch.manual_seed(0)
    model = Projected(mix, d=16, heads=2).double()
    with ss.probe(model, every=1, max_rows=None) as scope:
        model(tokens().double()).square().mean().backward()
    return scope.history()


def as_passed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v)


def on_q(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q * 8**-0.5, k, v, scale=1.0)


def on_both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q / 8**0.25, (8**-0.25) * k, v, scale=1.0)


def as_a_tensor(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q = q * torch.tensor(8**-0.5, dtype=q.dtype)
    return functional.scaled_dot_product_attention(q.contiguous(), k, v, scale=1.0)


def before_a_rotation(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * math.cos(0.0) + torch.cat((-b, a), dim=-1) * torch.zeros(8, dtype=x.dtype)

    return functional.scaled_dot_product_attention(turned(q * 8**-0.5), turned(k), v, scale=1.0)


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q = q.clone()
    q *= 8**-0.5
    return ss.attention(q, k, v, scale=1.0)


def explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax((q * 2.0) @ k.mT / (2.0 * math.sqrt(8)), dim=-1) @ v


@pytest.mark.parametrize("mix", [on_q, on_both, as_a_tensor, before_a_rotation, in_place, explicit])
def test_wherever_it_is_applied_it_is_the_scale(mix: Any) -> None:
    found, wanted = read(mix), read(as_passed)
    assert found.sites[0].scale == pytest.approx(wanted.sites[0].scale)
    for name, want in wanted.snapshots[0].readings.items():
        np.testing.assert_allclose(found.snapshots[0].readings[name], want, rtol=1e-5, atol=1e-7, err_msg=name)


def forgotten(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, scale=1.0)


def twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q * 8**-0.5, k, v)


def after_a_norm(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A norm undoes whatever q was multiplied by."""
    return functional.scaled_dot_product_attention(functional.normalize(q * 3.0, dim=-1), k, v, scale=2.0)


@pytest.mark.parametrize(("mix", "scale"), [(forgotten, 1.0), (twice, 1 / 8), (after_a_norm, 2.0)])
def test_what_is_wrong_is_still_seen(mix: Any, scale: float) -> None:
    assert read(mix).sites[0].scale == pytest.approx(scale)


def whisper(implementation: str) -> Any:
    transformers = pytest_transformers()
    config = transformers.WhisperConfig(
        vocab_size=60, d_model=128, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=40,
        max_target_positions=40, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.WhisperModel._from_config(config, attn_implementation=implementation)


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_whisper_has_the_right_scale(implementation: str, spoiled: bool) -> None:
    """Sharp or not, its scale is 1/√d: only a model that lacks it is told so."""
    model = whisper(implementation)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight")):
                p.mul_(60.0)  # frozen, whatever the scale
        if spoiled:
            for module in model.modules():
                if hasattr(module, "scaling"):
                    module.scaling = 1.0
    sound, ids = torch.randn(4, 8, 80), torch.randint(3, 60, (4, 30))
    with ss.probe(model, every=1) as scope:
        for _ in range(4):
            model(input_features=sound, decoder_input_ids=ids).last_hidden_state.square().mean().backward()
            scope.step()
    history = scope.history()
    assert [site.scale for site in history.sites] == pytest.approx([1.0 if spoiled else 64**-0.5] * 3)
    fired = {outcome.code for outcome in diagnose(history).outcomes if outcome.kind in ("finding", "tip")}
    assert ("SS005" in fired) == spoiled
