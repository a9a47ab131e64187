"""The readings that show faults, against weights written out by hand in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.read.alike import alike
from softscope.doctor.read.not_softmax import dropped, twice
from softscope.doctor.read.same_tokens import same_keys

B, H, N, D = 3, 2, 40, 8


class Attending(nn.Module):
    """One attention with the mask it is given, by PyTorch's function or step by step."""

    def __init__(self, *, explicit: bool = False, causal: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(12, H * D)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(H * D, H * D) for _ in range(3))
        self.explicit, self.causal = explicit, causal

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, *, mask: Tensor | None = None) -> Tensor:
        del attention_mask  # what a model may forget
        q, k, v = self.heads(input_ids)
        if self.explicit:
            logits = q @ k.mT / math.sqrt(D)
            logits = logits if mask is None else logits.masked_fill(~mask, -math.inf)
            weights = torch.softmax(logits, dim=-1).nan_to_num(0.0)
            return weights @ v
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)

    def heads(self, tokens: Tensor) -> list[Tensor]:
        x = self.embed(tokens)
        return [
            one(x).unflatten(-1, (H, D)).transpose(1, 2)  # type: ignore[no-untyped-call]
            for one in (self.q_proj, self.k_proj, self.v_proj)
        ]

    def weights(self, tokens: Tensor, shown: Tensor) -> Tensor:
        """Written out, in float64."""
        q, k, _ = (x.detach().double() for x in self.heads(tokens))
        logits = (q @ k.mT / math.sqrt(D)).masked_fill(~shown, -math.inf)
        return torch.softmax(logits, dim=-1).nan_to_num(0.0)


def tokens() -> Tensor:
    return torch.randint(12, (B, N), generator=torch.Generator().manual_seed(1))


def readings(model: nn.Module, *given: Any, **named: Any) -> dict[str, Any]:
    with ss.probe(model, every=1, max_rows=None) as scope:
        model(*given, **named).sum().backward()
        scope.step()
    (snapshot,) = scope.history().snapshots
    assert scope.history().unseen == ()
    return {name: x[0] for name, x in snapshot.readings.items()}


MASKS = {
    "all": torch.ones(N, N, dtype=torch.bool),
    "causal": torch.ones(N, N, dtype=torch.bool).tril(),
    "the next one, too": torch.ones(N, N, dtype=torch.bool).tril(1),
    "a prefix": torch.ones(N, N, dtype=torch.bool).tril() | (torch.arange(N) < 10),
    "inverted": torch.ones(N, N, dtype=torch.bool).triu(),
    "a window": torch.ones(N, N, dtype=torch.bool).tril().triu(-3),
}


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_weight_on_later_tokens(name: str, explicit: bool) -> None:
    model, shown = Attending(explicit=explicit), MASKS[name]
    found = readings(model, tokens(), mask=shown)
    weights = model.weights(tokens(), shown)
    count = shown.sum(dim=-1)
    rows = (count > 1) & (2 * count >= min(2 * 32, int(count.max())))  # those that averages are over
    ahead = weights.triu(1).sum(dim=-1)[:, :, rows].mean(dim=(0, 2))
    np.testing.assert_allclose(found["ahead"], ahead, rtol=1e-5, atol=1e-7)
    if name in ("causal", "a window"):
        assert not found["ahead"].any(), "exactly 0"
    sees = shown.triu(1).any(dim=-1)[rows & (torch.arange(N) < N - 1)].double().mean()
    np.testing.assert_allclose(found["sees_ahead"], float(sees), rtol=1e-6)
    np.testing.assert_allclose(found["own"], 1.0)
    assert not found["blind"].any()


def test_causal_by_the_flag_sees_nothing_ahead() -> None:
    found = readings(Attending(causal=True), tokens())
    assert not found["ahead"].any()
    assert not found["sees_ahead"].any()


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("hides", [True, False])
def test_weight_on_padding(hides: bool, explicit: bool) -> None:
    real = torch.arange(N) < torch.tensor([N, 30, 20])[:, None]
    shown = real[:, None, None, :].expand(B, 1, N, N) if hides else torch.ones(B, 1, N, N, dtype=torch.bool)
    model = Attending(explicit=explicit)
    found = readings(model, tokens(), real.long(), mask=shown)
    weights = model.weights(tokens(), shown)
    on = (weights * ~real[:, None, None, :]).sum(dim=-1)  # (B, H, N)
    rows = real[:, None].expand_as(on)
    wanted = (on * rows).sum(dim=(0, 2)) / rows.sum(dim=(0, 2))
    np.testing.assert_allclose(found["padding"], wanted, rtol=1e-5, atol=1e-7)
    assert bool(found["padding"].any()) is not hides


def test_padding_is_unknown_without_a_mask_among_the_arguments() -> None:
    assert "padding" not in readings(Attending(), tokens())
    assert not readings(Attending(), tokens(), torch.ones(B, N))["padding"].any()


@pytest.mark.parametrize("explicit", [False, True])
def test_tokens_that_see_nothing(explicit: bool) -> None:
    shown = torch.ones(N, N, dtype=torch.bool).tril(-1)
    shown[20] = False
    shown[:, 20] |= torch.arange(N) > 20
    found = readings(Attending(explicit=explicit), tokens(), torch.ones(B, N), mask=shown)
    np.testing.assert_allclose(found["blind"], 2 / N, rtol=1e-6)  # the first one and number 20
    np.testing.assert_allclose(found["own"], 0.0)
    hidden = readings(Attending(explicit=explicit), tokens(), mask=torch.zeros(N, N, dtype=torch.bool))
    np.testing.assert_allclose(hidden["blind"], 1.0)


def test_padded_queries_that_see_nothing_are_no_fault() -> None:
    real = torch.arange(N) >= torch.tensor([0, 10, 20])[:, None]  # padded in front
    shown = real[:, None, None, :] & torch.ones(N, N, dtype=torch.bool).tril()
    for given in ((tokens(), real.long()), (tokens(),)):
        assert not readings(Attending(), *given, mask=shown)["blind"].any()


def test_rows_with_loss_that_see_one_key() -> None:
    model = Attending(causal=True)
    with ss.probe(model, every=1, max_rows=None) as scope:
        model(tokens())[:, :, 0].sum().backward()  # the loss reads the first token only
        scope.step()
    assert scope.history().snapshots[0].readings["alone"][0].tolist() == [1.0, 1.0]
    assert readings(model, tokens())["alone"][0] == pytest.approx(1 / N)


def test_alike() -> None:
    x = torch.randn(2, 3, 10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for centred in (False, True):
        y = (x - x.mean(dim=2, keepdim=True) if centred else x).numpy()
        unit = y / np.linalg.norm(y, axis=-1, keepdims=True)
        cosines = np.abs(unit @ np.swapaxes(unit, -1, -2))
        wanted = (cosines.sum(axis=(-1, -2)) - 10) / 90
        np.testing.assert_allclose(alike(x, centred=centred), wanted)
    assert bool((alike(x[..., :1] * torch.ones(4), centred=True) > 0.999).all())
    assert bool(alike(x[:, :, :2], centred=False).isnan().all()), "two tokens say nothing"
    assert bool(alike(torch.zeros(1, 1, 8, 4), centred=False).isnan().all()), "tokens that are the same say nothing"
    padded = torch.cat([x, torch.ones(2, 3, 20, 4, dtype=x.dtype)], dim=2)
    real = (torch.arange(30) < 10).expand(2, 30)
    some = padded[:, :, ::2][:, :, :5]
    np.testing.assert_allclose(alike(padded[:, :, ::2], centred=True, real=real[:, ::2]), alike(some, centred=True))


def test_dropped_and_twice() -> None:
    scores = torch.randn(1, 1, 50, 40, generator=torch.Generator().manual_seed(0))
    visible = torch.ones_like(scores, dtype=torch.bool)
    assert not bool(dropped(scores, scores, visible).any())
    share = float(dropped(functional.dropout(scores, 0.25), scores, visible).mean())
    assert share == pytest.approx(0.25, abs=0.05)
    assert not bool(twice(scores, visible).any())
    assert bool((twice(torch.softmax(scores, dim=-1), visible) == 1.0).all())


def test_same_keys() -> None:
    ids = torch.tensor([[1, 2, 1, 3], [4, 4, 5, 6]])
    table = torch.randn(7, 2, 3, generator=torch.Generator().manual_seed(0))
    k = table[ids].transpose(1, 2)
    assert same_keys(k, ids, None).tolist() == [[1.0, 1.0]]
    moved = k + 0.01 * torch.arange(4)[None, None, :, None]
    assert same_keys(moved, ids, None).tolist() == [[0.0, 0.0]]
    half = k.clone()
    half[1] += torch.arange(4)[None, :, None]
    assert same_keys(half, ids, None).tolist() == [[0.5, 0.5]]
    assert bool(same_keys(k, torch.tensor([[1, 2, 3, 4], [4, 1, 5, 6]]), None).isnan().all()), "none repeats"
    assert bool(same_keys(k, ids, torch.tensor([[1, 1, 0, 1], [0, 1, 1, 1]]).bool()).isnan().all()), "padding"


def test_position_is_read_in_the_first_layer_where_nothing_else_tells_tokens_apart() -> None:
    model = Attending()
    assert readings(model, tokens())["same_keys"].tolist() == [1.0, 1.0]
    slopes = -0.1 * (torch.arange(N)[:, None] - torch.arange(N)).abs().float()
    assert "same_keys" not in readings(model, tokens(), mask=slopes), "position is in the bias"
    model.add_module("drop", nn.Dropout(0.1))
    assert "same_keys" not in readings(model, tokens()), "a dropout may tell them apart"
    assert readings(model.eval(), tokens())["same_keys"].tolist() == [1.0, 1.0]


def test_same_keys_of_a_long_sequence_cost_no_square_of_it() -> None:
    ids = torch.arange(1 << 16).remainder(7)[None]
    k = torch.nn.functional.one_hot(ids, 7).float()[:, None]
    assert same_keys(k, ids, None).tolist() == [[1.0]]  # 65,536² pairs would take 4 GB
