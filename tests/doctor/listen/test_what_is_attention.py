"""Attention is what is computed, whatever the class is called: weights over keys, from q·k, multiplied into values."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from softscope.doctor.listen import patches, reasons


def seen(model: nn.Module, *inputs: Tensor, grad: bool = True) -> Any:
    patches.lost.clear()
    with ss.probe(model, every=1) as scope, torch.set_grad_enabled(grad):
        output = model(*inputs)
        if grad:
            output.square().mean().backward()
    assert not patches.lost, list(patches.lost)
    return scope.history()


class ChannelSoftmax(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv, self.dim = nn.Conv2d(3, 8, 3, padding=1), dim

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.conv(x), dim=self.dim)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 40))

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.weight).softmax(-1)


class CosineClassifier(Classifier):
    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(8.0 * functional.normalize(x, dim=-1) @ functional.normalize(self.weight, dim=0), dim=-1)


class Router(nn.Module):
    """Mixture of experts: tokens choose among experts, whose outputs are mixed for each token."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.gate, self.experts, self.way = nn.Linear(16, 4), nn.Parameter(torch.randn(4, 16, 16)), way

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.softmax(x @ self.gate.weight.T if self.way == "product" else self.gate(x), dim=-1)
        each = torch.einsum("bnd,edf->bnef", x, self.experts)
        if self.way == "dispatch":
            return torch.einsum("bne,bnd->bed", gate, x)
        if self.way == "sum":
            return (gate.unsqueeze(-1) * each).sum(-2)
        return torch.einsum("bne,bnef->bnf", gate, each)


class Codebook(nn.Module):
    """A discrete autoencoder: a sample over classes, and its vector."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.to_logits, self.codes, self.way = nn.Linear(16, 40), nn.Embedding(40, 16), way

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "near":
            return torch.softmax(x @ self.codes.weight.T, dim=-1) @ self.codes.weight
        sample = functional.gumbel_softmax(self.to_logits(x), tau=0.9, dim=-1, hard=self.way == "hard")
        if self.way == "einsum":
            return torch.einsum("bnc,cd->bnd", sample, self.codes.weight)
        return sample @ self.codes.weight


class DynamicConvolution(nn.Module):
    """Weights over a window of neighbours, from the token alone."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        near = functional.pad(x, (0, 0, 2, 2)).unfold(1, 5, 1)  # (B, n, d, 5)
        return (near @ torch.softmax(self.kernel(x), dim=-1).unsqueeze(-1)).squeeze(-1)


TOKENS = torch.randn(2, 40, 16, generator=torch.Generator().manual_seed(0))
IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
OTHERS = {
    "a convolution's channels": (ChannelSoftmax(1), IMAGE),
    "a convolution's columns": (ChannelSoftmax(-1), IMAGE),
    "a classifier": (Classifier(), TOKENS),
    "a classifier of single vectors": (Classifier(), TOKENS[:, 0]),
    "a router": (Router("linear"), TOKENS),
    "a router's product": (Router("product"), TOKENS),
    "a router's sum": (Router("sum"), TOKENS),
    "a router's dispatch": (Router("dispatch"), TOKENS),
    "a codebook": (Codebook("soft"), TOKENS),
    "a codebook, hard": (Codebook("hard"), TOKENS),
    "a codebook, einsum": (Codebook("einsum"), TOKENS),
    "the nearest codes": (Codebook("near"), TOKENS),
    "a dynamic convolution": (DynamicConvolution(), TOKENS),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", OTHERS)
def test_another_softmax_is_not_attention(name: str, grad: bool) -> None:
    found = seen(*OTHERS[name], grad=grad)
    assert not found.sites
    assert not found.unseen


class Attending(nn.Module):
    """Attention in a class whose name does not say so."""

    def __init__(self, mix: Any) -> None:
        super().__init__()
        self.q, self.k, self.v, self.mix = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16), mix

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(self.q(x), self.k(x), self.v(x))


def slots(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Slot attention: the queries compete for each key."""
    w = torch.softmax(q[:, :5] @ k.mT, dim=1)
    return (w / w.sum(-1, keepdim=True)) @ v


def additive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    logits = torch.tanh(q[:, :, None] + k[:, None]) @ torch.linspace(-1.0, 1.0, 16)
    return torch.softmax(logits, dim=-1) @ v


def distances(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(-torch.cdist(q, k), dim=-1) @ v


def not_multiplied(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = torch.softmax(q @ k.mT, dim=-1)
    return (w[..., None].cumsum(1) * v[:, None]).sum(-2)


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.softmax(-1) @ (k.softmax(-2).mT @ v)


@pytest.mark.parametrize(
    ("mix", "code"),
    [
        (slots, reasons.OTHER_AXIS), (additive, reasons.NO_PRODUCT), (distances, reasons.NO_PRODUCT),
        (not_multiplied, reasons.NOT_MULTIPLIED), (linear_attention, reasons.NO_PRODUCT),
    ],
)  # fmt: skip
@pytest.mark.parametrize("grad", [True, False])
def test_what_is_not_understood_is_said(mix: Any, code: str, grad: bool) -> None:
    found = seen(nn.Sequential(Attending(mix)), TOKENS, grad=grad)
    assert not found.sites
    ((name, why),) = found.unseen
    assert (name, why.code) == ("0", code)


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(5.0 * torch.tanh(q @ k.mT / 4.0 / 5.0), dim=-1) @ v


def cast(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    logits = (q * 0.25) @ k.mT + torch.randn(40, 40)
    return functional.dropout(torch.softmax(logits, -1, dtype=torch.float64).to(v.dtype), 0.1) @ v


def of_custom_logits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Something that is not followed stands between the product and the softmax, and behind it."""
    w = torch.softmax(torch.special.expit(q @ k.mT), dim=-1)
    return torch.special.expit(w) @ v


def two_products(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax((q @ k.mT + q @ v.mT) / 4.0, dim=-1) @ v


def mixed_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.unflatten(-1, (2, 8)).transpose(1, 2) for x in (q, k, v))
    x = torch.einsum("bhqk,hg->bgqk", q @ k.mT, torch.eye(2) + 0.1)
    return (x.softmax(-1) @ v).transpose(1, 2).flatten(2)


def of_one_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.unflatten(-1, (2, 8)).transpose(1, 2) for x in (q[:1, :1], k[:1], v[:1]))
    return (torch.softmax(q @ k.mT / math.sqrt(8), -1) @ v).transpose(1, 2).flatten(2)


def without_batch(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q[0] @ k[0].T * 0.25, dim=-1) @ v[0]


def by_names(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    x = torch.mul(input=torch.matmul(input=q, other=torch.transpose(input=k, dim0=1, dim1=2)), other=0.25)
    w = functional.dropout(input=torch.softmax(input=x, dim=-1), p=0.1, training=True, inplace=False)
    return torch.bmm(input=w, mat2=v)


def two_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    w = torch.softmax(torch.baddbmm(torch.zeros(()).expand(1, 1, 1), q, k.mT, alpha=0.25), dim=-1)
    return w @ v + torch.bmm(w, k)


@pytest.mark.parametrize(
    ("mix", "heads", "d", "scale"),
    [
        (capped, 1, 16, 0.25), (cast, 1, 16, 0.25), (of_custom_logits, 1, 0, math.nan), (two_products, 1, 0, math.nan),
        (mixed_heads, 2, 0, math.nan), (of_one_query, 2, 8, 8**-0.5), (without_batch, 1, 16, 0.25),
        (by_names, 1, 16, 0.25), (two_values, 1, 16, 0.25),
    ],
)  # fmt: skip
@pytest.mark.parametrize("grad", [True, False])
def test_attention_is_seen_under_any_name(mix: Any, heads: int, d: int, scale: float, grad: bool) -> None:
    found = seen(nn.Sequential(Attending(mix)), TOKENS, grad=grad)
    assert not found.unseen
    (site,) = found.sites
    assert (site.name, site.heads, site.head_size) == ("0", heads, d)
    assert site.scale == pytest.approx(scale, nan_ok=True)
    assert found.snapshots[0].has_loss == grad


class WeightsOfThreeAxes(nn.Module):
    """As XLNet: each projection is an einsum with heads and features on axes of their own, positions first."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.randn(16, 4, 8) / 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (torch.einsum("ibh,hnd->ibnd", x.transpose(0, 1), w) for w in (self.q, self.k, self.v))
        w = torch.softmax(torch.einsum("ibnd,jbnd->nijb", q, k) * 8**-0.5, dim=2)
        return torch.einsum("nijb,jbnd->ibnd", w, v)


class LearnedQueries(nn.Module):
    """A parameter may ask, as in a Perceiver: only what is chosen from must not be one."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Parameter(torch.randn(5, 4, 4)), nn.Linear(16, 32)

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.kv(x).view(*x.shape[:2], 2, 4, 4).unbind(2)
        return torch.einsum("bhqk,bkhd->bqhd", torch.einsum("qhd,bkhd->bhqk", self.q, k).softmax(-1), v)


@pytest.mark.parametrize("model", [WeightsOfThreeAxes(), LearnedQueries()])
@pytest.mark.parametrize("grad", [True, False])
def test_parameters_on_either_side(model: nn.Module, grad: bool) -> None:
    found = seen(model, TOKENS, grad=grad)
    assert not found.unseen
    assert [site.heads for site in found.sites] == [4]
    assert found.snapshots[0].readings["count"][0].tolist() == [40.0] * 4


def test_a_soft_cap_is_known() -> None:
    """max_logit is that of scale·q·k, before the cap."""
    model = Attending(capped)
    reading = seen(model, TOKENS).snapshots[0].readings
    with torch.no_grad():
        wanted = (model.q(TOKENS) @ model.k(TOKENS).mT / 4.0).max()
    assert reading["max_logit"][0, 0] <= wanted + 1e-5


def test_memory_is_let_go() -> None:
    """Without gradients, a layer's weights must not live until the end of the pass."""
    import weakref

    alive: list[Any] = []

    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert not [x for x in alive if x() is not None], "weights of an earlier layer are still held"
        w = torch.softmax(q @ k.mT, dim=-1)
        alive.append(weakref.ref(w))
        return w @ v

    seen(nn.Sequential(*(Attending(mix) for _ in range(4))), TOKENS, grad=False)
    assert len(alive) == 4
