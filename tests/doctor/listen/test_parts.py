"""A model that is called in parts, as Lightning's modules are: `training_step` calls the submodules, not the model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.listen import reasons

from ..patients import stack, tokens


class Step(nn.Module):
    """Like a LightningModule."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.model, self.way = stack("fused"), way
        self.heads = nn.ModuleList([stack("function")])

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)

    def training_step(self, x: Tensor) -> Tensor:
        if self.way == "forward":
            return self.forward(x).square().mean()
        if self.way == "call":
            return self(x).square().mean()
        if self.way == "parts":
            return self.heads[0](self.model(x)).square().mean()
        return self.model(x).square().mean()


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("way", ["model", "forward", "call", "parts"])
def test_the_inner_model_is_read(way: str, optimized: bool) -> None:
    def run(probed: bool) -> tuple[Any, list[Tensor]]:
        torch.manual_seed(0)
        model = Step(way)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found: Any = ss.probe(model, every=1)
        if probed:
            found.__enter__()
        for _ in range(3):
            optimizer.zero_grad()
            model.training_step(tokens()).backward()
            if optimized:
                optimizer.step()
            elif probed:
                found.step()
        if probed:
            found.__exit__(None, None, None)
        return found, [p.detach().clone() for p in model.parameters()]

    found, after = run(True)
    assert all(torch.equal(a, b) for a, b in zip(after, run(False)[1], strict=True))
    history = found.history()
    names = [site.name for site in history.sites]
    assert names[:2] == ["model.layers.0", "model.layers.1"]
    assert len(names) == (4 if way == "parts" else 2)
    assert [snapshot.step for snapshot in history.snapshots] == [0, 1, 2]
    assert all(snapshot.has_loss for snapshot in history.snapshots)
    assert not torch.isnan(torch.tensor(history.series("transmission"))).any()
    assert not history.unseen
    assert not [m for m in found.model.modules() if m._forward_hooks or m._forward_pre_hooks]


class NoForward(nn.Module):
    """Without a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = stack("fused"), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)


def test_parts_of_one_pass_are_one_step() -> None:
    model = NoForward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model, every=1) as found:
        for _ in range(2):
            model.second(model.first(tokens())).square().mean().backward()
            optimizer.step()
    history = found.history()
    assert len(history.snapshots) == 2
    assert [site.name for site in history.sites] == ["first.layers.0", "first.layers.1", "second.self_attn"]
    assert all(snapshot.has_loss for snapshot in history.snapshots)


def test_a_part_of_another_model_says_what_to_pass() -> None:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = stack("fused")

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    model = Wrapper()
    with ss.probe(model) as found:
        model.inner(tokens()).mean().backward()
    ((_, why),) = found.history().unseen
    assert why.code == reasons.NO_PASS
    assert "if only a part of it is called, pass that part" in str(why)


class OwnCode(nn.Module):
    """Its attention is in its own code, which `training_step` reaches without calling the model."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)[:, None].chunk(3, dim=-1)
        return functional.scaled_dot_product_attention(q, k, v)[:, 0]

    def training_step(self, x: Tensor) -> Tensor:
        return self.forward(x).mean()


def test_code_that_is_reached_past_the_model_is_said() -> None:
    model = OwnCode()
    with ss.probe(model) as found:
        model.training_step(tokens()).backward()
    assert [(name, why.code) for name, why in found.history().unseen] == [("OwnCode", reasons.PARTS)]
    with ss.probe(model) as found:
        model(tokens()).mean().backward()
    assert not found.history().unseen
    assert [site.name for site in found.history().sites] == ["OwnCode"]
