"""A rank counts its heads from 0; where it can be seen which of all heads they are, it is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.listen import reasons

RANK, RANKS = 2, 4


class Layer(nn.Module):
    """Eight heads of four features, or as many as its projections give."""

    def __init__(self, features: int = 32) -> None:
        super().__init__()
        self.num_heads = 8
        self.q, self.k, self.v = (nn.Linear(32, features) for _ in range(3))
        self.out = nn.Linear(features, 32)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (-1, 4)).transpose(1, 2) for y in (self.q(x), self.k(x), self.v(x)))
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.fixture
def group() -> Iterator[Any]:
    """Four ranks, of which this process is the third; no other is there, and nothing is sent."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch was built without torch.distributed")
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    torch.distributed.init_process_group("fake", store=fake.FakeStore(), rank=RANK, world_size=RANKS)
    yield
    torch.distributed.destroy_process_group()


def read(model: nn.Module) -> Any:
    with ss.probe(model, every=1) as scope, torch.no_grad():
        model(torch.randn(2, 6, 32)) + 0.0  # waits for the ranks that are not there
    return scope.history()


@pytest.mark.usefixtures("group")
def test_the_heads_of_this_rank_are_named() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = nn.Sequential(Layer())
    plan: Any = {f"0.{x}": ColwiseParallel() for x in "qkv"} | {"0.out": RowwiseParallel()}
    parallelize_module(model, init_device_mesh("cpu", (RANKS,)), plan)
    history = read(model)
    assert [site.heads for site in history.sites] == [2]
    assert dict(history.unseen) == {"0": reasons.Reason(reasons.RANK, ("8", "4–5"))}
    assert "4–5" in str(history.unseen[0][1])


@pytest.mark.usefixtures("group")
def test_what_cannot_be_seen_is_said() -> None:
    """Sharded by hand: only the module's own number tells that heads are missing."""
    assert dict(read(nn.Sequential(Layer(features=8))).unseen) == {"0": reasons.Reason(reasons.SOME_RANK, ("8", "2"))}


@pytest.mark.usefixtures("group")
def test_a_rank_that_has_all_heads_says_nothing() -> None:
    assert not read(nn.Sequential(Layer())).unseen


def test_without_ranks_there_is_nothing_to_say() -> None:
    assert not read(nn.Sequential(Layer(features=8))).unseen
