"""A model over a sequence that is shared out among ranks, and the same in one process, each with the doctor."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional

import softscope as ss
from softscope import distributed as sd
from softscope.doctor.read.snapshot import History

LENGTH, D, HEADS, BATCH = 40, 16, 4, 2


class Layer(nn.Module):
    """Causal attention, over shards if there is a layout."""

    def __init__(self, layout: Any) -> None:
        super().__init__()
        self.layout = layout
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(D, D, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        if self.layout is None:
            y = ss.attention(q, k, v, causal=True)
        else:
            y = sd.attention(q, k, v, causal=True, layout=self.layout)
        return x + y.transpose(1, 2).flatten(2)


class Model(nn.Module):
    """Two layers."""

    def __init__(self, layout: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, D)
        self.places = nn.Embedding(LENGTH, D)
        self.layers = nn.ModuleList(Layer(layout) for _ in range(2))
        self.out = nn.Linear(D, 7)

    def forward(self, tokens: Tensor, at: Tensor) -> Tensor:
        x = self.table(tokens) + self.places(at)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def run(layout: Any, steps: int, group: Any) -> History:
    """Train; ranks average their gradients."""
    model = Model(layout).double()
    generator = torch.Generator().manual_seed(1)
    ranks = 1 if layout is None else dist.get_world_size()
    at = torch.arange(LENGTH) if layout is None else sd.positions(LENGTH, layout=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ss.probe(model, every=1, max_rows=None, **({} if group is None else {"group": group})) as scope:
        for _ in range(steps):
            whole = torch.randint(7, (BATCH, LENGTH + 1), generator=generator)
            tokens, target = whole[:, :-1][:, at], whole[:, 1:][:, at]
            logits = model(tokens, at)
            loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum")
            loss = loss * ranks / (BATCH * LENGTH)
            optimizer.zero_grad()
            loss.backward()
            for p in model.parameters():
                if ranks > 1 and p.grad is not None:
                    dist.all_reduce(p.grad)
                    p.grad /= ranks
            optimizer.step()
            scope.step(loss=loss.item())
    return scope.history()


def compared(layout: str, steps: int) -> tuple[History, History] | None:
    """On the first rank: the run over shards, and the run in one process."""
    got = run(layout, steps, dist.group.WORLD)
    return (got, run(None, steps, None)) if dist.get_rank() == 0 else None


def one_rank_is_empty() -> tuple[int, int]:
    """The second rank holds no positions: how many snapshots there are, and how many steps were made."""
    torch.manual_seed(0)
    layer = Layer("contiguous")
    x = torch.randn(1, 6 if dist.get_rank() == 0 else 0, D, requires_grad=True)
    with ss.probe(layer, every=1, group=dist.group.WORLD) as scope:
        for _ in range(2):
            layer(x).sum().backward()
            scope.step()
    return len(scope.history().snapshots), 2


def one_rank_fails() -> tuple[int, list[str]]:
    """Reading fails on the second rank, before the keys are fetched: what was read, and what was not."""
    from softscope.doctor import scope as scopes

    torch.manual_seed(0)
    layer = Layer("contiguous")
    x = torch.randn(1, 6, D, requires_grad=True)
    original = scopes.keep_rows

    def fails(*_: Any) -> Any:
        raise MemoryError("no memory left")

    if dist.get_rank() == 1:
        scopes.keep_rows = fails
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ss.probe(layer, every=1, group=dist.group.WORLD) as scope:
                for _ in range(2):
                    layer(x).sum().backward()
                    scope.step()
    finally:
        scopes.keep_rows = original
    return len(scope.history().snapshots), [why.code for _, why in scope.history().unseen]


def without_a_group() -> list[str]:
    """What a probe of one rank alone says."""
    return [why.code for _, why in run("contiguous", 1, None).unseen]


class Encoder(nn.Module):
    """One layer that sees all keys, through PyTorch's function."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(D, D, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def in_pytorchs_context(grouped: bool) -> Any:
    """What was read in PyTorch's context parallel, which has no backward pass on a CPU, and in one process."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    model, mesh = Encoder(), init_device_mesh("cpu", (dist.get_world_size(),))
    x = torch.randn(BATCH, LENGTH, D, generator=torch.Generator().manual_seed(1))
    mine = x.clone()
    options: Any = {"max_rows": None} | ({"group": dist.group.WORLD} if grouped else {})
    with (
        torch.no_grad(),
        ss.probe(model, **options) as scope,
        context_parallel(mesh, buffers=[mine], buffer_seq_dims=[1]),
    ):
        model(mine)
    if not grouped:
        return [why.code for _, why in scope.history().unseen]
    with torch.no_grad(), ss.probe(model, max_rows=None) as alone:
        model(x)
    return scope.history(), alone.history()
