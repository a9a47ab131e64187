"""What the tests of sharded context's edges run on every rank."""

from __future__ import annotations

import random
import time
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import softscope as ss
from softscope import distributed as sd


def heads(n: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """A whole sequence, the same on every rank: q, k, v (1, 2, n, 8)."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 2, n, 8, generator=generator).to(dtype) for _ in range(3)]


def refusals() -> list[str]:
    """What wrong calls are told; each rank takes part in each of them."""
    rank = dist.get_rank()
    q, k, v = heads(8)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    other = rank == 1  # the rank that differs from the others
    calls: list[tuple[Any, dict[str, Any]]] = [
        ((torch.cat([q, q], dim=1) if other else q, k, v), {}),
        ((q[..., :4], k[..., :4], v) if other else (q, k, v), {}),
        ([x.double() for x in (q, k, v)] if other else (q, k, v), {}),
        ((q, k, v), {"layout": "zigzag" if other else "contiguous"}),
        ((q, k, v), {"causal": other}),
        ((q, k, v), {"scale": 0.5 if other else 0.25}),
        ([x.expand(3, -1, -1, -1) for x in (q, k, v)] if other else (q, k, v), {}),
        ((q.clone().requires_grad_(), k, v) if other else (q, k, v), {}),
        ((q, k, v), {"layout": "striped"}),
        ((q, k, v), {"mask": torch.ones(8, 8, dtype=torch.bool)}),
        ((q, k, v), {"causal": True, "mask": torch.ones(8, 8, dtype=torch.bool)}),
        ((q.numpy(), k, v) if other else (q, k, v), {}),
        ((DTensor.from_local(q, mesh), k, v) if other else (q, k, v), {}),
        ((q, k[..., :5, :], v[..., :5, :]), {"causal": True}),
        ([x[..., : 8 - other, :] for x in (q, k, v)], {"layout": "zigzag"}),
        ((q, k, v), {"softcap": -1.0}),
    ]
    told = []
    for given, options in calls:
        try:
            sd.attention(*given, **options)
            told.append("nothing")
        except (TypeError, ValueError) as error:
            told.append(str(error))
    sd.attention(q, k, v)  # no message of a refused call is still on its way
    return told


def refused_shards() -> list[str]:
    """What unshard tells about shards that do not belong together, and what a rank outside a group is told."""
    rank, told = dist.get_rank(), []
    whole = heads(8)
    group = dist.new_group([0, 1])
    calls: list[Any] = [
        lambda: sd.unshard(torch.zeros(4, 2 + (rank == 1)), axis=0),
        lambda: sd.unshard(torch.zeros(4, 2), axis=0, layout="striped" if rank == 1 else "zigzag"),
        lambda: sd.unshard(torch.zeros(4 + rank, 2), axis=0, layout="zigzag"),
        lambda: sd.attention(*whole, group=group),
    ]
    for call in calls:
        try:
            call()
            told.append("nothing")
        except ValueError as error:
            told.append(str(error))
    return told


def special_values() -> list[bool]:
    """Whether rows with NaN and infinity are those of one process."""
    same = []
    for broken, value in ((0, torch.nan), (1, torch.nan), (2, torch.nan), (1, torch.inf), (2, torch.inf)):
        whole = heads(16, seed=broken)
        whole[broken][0, 0, 5, 3] = value
        for layout in ("contiguous", "zigzag"):
            for x in whole:
                x.requires_grad_()
            want, statistics = ss.attention(*whole, causal=True, return_partition=True)
            mine = [sd.shard(x.detach(), layout=layout).requires_grad_() for x in whole]
            got, found = sd.attention(*mine, causal=True, layout=layout, return_partition=True)
            same += [
                bool(torch.allclose(a, sd.shard(b[..., None], layout=layout)[..., 0], atol=1e-5, equal_nan=True))
                for a, b in ((found.lse, statistics.lse), (found.entropy, statistics.entropy))
            ]
            outputs = got, sd.attention(*mine, causal=True, layout=layout)
            same += [torch.allclose(x, sd.shard(want, layout=layout), atol=1e-5, equal_nan=True) for x in outputs]
            slopes, own = torch.autograd.grad(want.sum(), whole), torch.autograd.grad(got.sum(), mine)
            same += [
                torch.allclose(a, sd.shard(b, layout=layout), atol=1e-5, equal_nan=True)
                for a, b in zip(own, slopes, strict=True)
            ]
    return same


def nothing_to_see() -> tuple[float, int]:
    """The largest output and count of queries where no rank has a key."""
    q, k, v = heads(4)
    out, found = sd.attention(q, k[..., :0, :], v[..., :0, :], sink=0.5, return_partition=True)
    return float(out.abs().max()), int(found.count.max())


def other_queries() -> float:
    """How far queries whose number has nothing to do with the keys' are from one process."""
    q, k, v = heads(24)
    mine = q[..., : 3 + dist.get_rank(), :]
    got = sd.attention(mine, sd.shard(k), sd.shard(v))
    return float((got - ss.attention(mine, k, v)).abs().max())


def repeated() -> list[bool]:
    """Whether calls on ranks that are late in turn give the same bits."""
    whole = heads(96)
    rng, runs = random.Random(dist.get_rank()), []
    for _ in range(4):
        shards = [sd.shard(x, layout="zigzag").requires_grad_() for x in whole]
        time.sleep(rng.random() / 50)
        out = sd.attention(*shards, causal=True, layout="zigzag")
        time.sleep(rng.random() / 50)
        runs.append([out, *torch.autograd.grad(out.sum(), shards)])
    return [torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0], strict=True)]


def allocated(n: int, layout: Any) -> tuple[int, int]:
    """The largest tensor that both passes make, and the most that they hold at once, in bytes."""
    shards = [torch.randn(1, 1, n // dist.get_world_size(), 64, requires_grad=True) for _ in range(3)]
    sd.attention(*shards, causal=True, layout=layout).sum().backward()  # what is set up once is not counted
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        sd.attention(*shards, causal=True, layout=layout).sum().backward()
    events = [e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return max(event.nbytes() for event in events), most


def on_an_axis_of_a_mesh() -> float:
    """How far sequences that are sharded along one axis of a mesh, a batch along the other, are from one process."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    whole = heads(10, seed=int(mesh.get_local_rank("dp")))
    shards = [sd.shard(x, (mesh, "cp"), layout="zigzag") for x in whole]
    got = sd.unshard(sd.attention(*shards, group=mesh["cp"], causal=True, layout="zigzag"), mesh["cp"], layout="zigzag")
    return float((got - ss.attention(*whole, causal=True)).abs().max())


class _Watching(TorchDispatchMode):
    """Sees every operation, so that the engine steps back."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


def watched() -> list[float]:
    """How far the ring with tensor operations, as on other devices, is from the ring with the engine."""
    options: dict[str, Any] = {"causal": True, "window": (7, None), "softcap": 2.0, "sink": torch.tensor([0.3, -1.0])}
    found = []
    for mode in (None, _Watching()):
        q, k, v = (sd.shard(x, layout="zigzag") for x in heads(37, dtype=torch.float64))
        shards = [q.requires_grad_(), k[:, :1].clone().requires_grad_(), v[:, :1].clone().requires_grad_()]
        if mode is not None:
            mode.__enter__()
        out, statistics = sd.attention(*shards, layout="zigzag", return_partition=True, **options)
        found.append([out, statistics.entropy, *torch.autograd.grad(out.sin().sum(), shards)])
        if mode is not None:
            mode.__exit__(None, None, None)
    return [float((a - b).abs().max()) for a, b in zip(*found, strict=True)]


def recomputed() -> list[bool]:
    """Whether activation checkpointing changes no bit of the gradients."""
    grads = []
    for again in (False, True):
        shards = [sd.shard(x).requires_grad_() for x in heads(12)]
        call = lambda *x: sd.attention(*x, causal=True).sin()  # noqa: E731
        out = checkpoint(call, *shards, use_reentrant=False) if again else call(*shards)
        grads.append(torch.autograd.grad(out.sum(), shards))
    return [torch.equal(a, b) for a, b in zip(*grads, strict=True)]


def differentiated_twice() -> str:
    """What a second derivative is told."""
    shards = [sd.shard(x).requires_grad_() for x in heads(12)]
    try:
        torch.autograd.grad(sd.attention(*shards).sum(), shards, create_graph=True)
    except RuntimeError as error:
        return str(error)
    return "nothing"


def compiled() -> tuple[float, bool]:
    """How far a compiled program's output is from one process, and whether its gradients are those of a plain one."""
    whole, grads = heads(12), []

    def program(*x: Tensor) -> Tensor:
        return 2.0 * sd.attention(*(3.0 * one for one in x), causal=True)

    for function in (program, torch.compile(program, backend="aot_eager")):
        shards = [sd.shard(x).requires_grad_() for x in whole]
        out = function(*shards)
        grads.append(torch.autograd.grad(out.sin().sum(), shards))
    want = 2.0 * ss.attention(*(3.0 * x for x in whole), causal=True)
    same = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*grads, strict=True))
    return float((out.detach() - sd.shard(want)).abs().max()), same


def autocast() -> tuple[str, float]:
    """The dtype of the output under autocast, and how far it is from one process."""
    whole = heads(12)
    with torch.autocast("cpu", torch.bfloat16):
        got = sd.attention(*(sd.shard(x) for x in whole))
        want = ss.attention(*whole)
    return str(got.dtype), float((got.float() - sd.shard(want).float()).abs().max())


def beside_context_parallel() -> list[float]:
    """How far PyTorch's own context parallel, ours inside it and ours after it, are from one process."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn import functional

    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("cp",))
    whole = heads(16)
    want = sd.shard(scaled_dot_product_attention(*whole), layout="zigzag")  # PyTorch balances in the same way
    buffers = [x.clone() for x in whole]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
        theirs = functional.scaled_dot_product_attention(*buffers)
        inside = sd.attention(*buffers, group=mesh, layout="zigzag")
    after = sd.attention(*(sd.shard(x, layout="zigzag") for x in whole), layout="zigzag")
    return [float((x - want).abs().max()) for x in (theirs, inside, after)]


def layouts(n: int) -> list[Any]:
    """The positions of this rank in each layout, and whether cutting and joining gives everything back."""
    whole = torch.arange(2 * n).reshape(n, 2)
    found: list[Any] = []
    for layout in ("contiguous", "zigzag"):
        mine = sd.shard(whole, axis=0, layout=layout)
        back = sd.unshard(mine, axis=0, layout=layout)
        there = sd.positions(n, layout=layout)
        found += [there.tolist(), torch.equal(mine, whole[there]), torch.equal(back, whole)]
    return found
