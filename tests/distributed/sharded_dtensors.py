"""What the tests of DTensors run on every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn import functional

import softscope as ss
import softscope.distributed as sd
from distributed.sharded_messages import told
from softscope.distributed import counting

# Of a mesh (dp, tp): the placements, and how many messages softmax takes.
LAYOUTS: dict[str, tuple[list[Any], int]] = {
    "rows over dp, entries over tp": ([Shard(0), Shard(1)], 1),
    "entries over tp": ([Replicate(), Shard(-1)], 1),
    "entries over dp": ([Shard(1), Replicate()], 1),
    "rows over both": ([Shard(0), Shard(0)], 0),
    "everything everywhere": ([Replicate(), Replicate()], 0),
}


def maps() -> list[tuple[str, bool]]:
    """Values, placements, messages and gradients in every layout; the length is not divisible by the ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    generator = torch.Generator().manual_seed(3)
    whole, v = torch.randn((4, 7), generator=generator).double(), torch.randn((4, 7), generator=generator).double()
    found = []
    for layout, (places, messages) in LAYOUTS.items():
        for name in ("softmax", "log_softmax"):
            one = whole.clone().requires_grad_()
            (getattr(ss, name)(one, temperature=0.5) * v).sum().backward()
            x, weights = (distribute_tensor(t, mesh, places) for t in (whole, v))
            x = x.detach().requires_grad_()
            getattr(sd, name)(x, temperature=0.5)
            with counting.counted() as sent:
                y = getattr(sd, name)(x, temperature=0.5)
            same = torch.allclose(y.full_tensor(), getattr(ss, name)(whole, temperature=0.5), rtol=1e-13)
            found.append((f"{layout}, {name}: values", isinstance(y, DTensor) and same))
            found.append((f"{layout}, {name}: placements", y.placements == x.placements and y.shape == whole.shape))
            found.append((f"{layout}, {name}: messages", sent.messages == messages))
            (y * weights).sum().full_tensor().backward()
            assert isinstance(x.grad, DTensor)
            assert one.grad is not None
            found.append((f"{layout}, {name}: gradient", torch.allclose(x.grad.full_tensor(), one.grad, rtol=1e-11)))
    return found


def reduced() -> list[tuple[str, bool]]:
    """What has one number a row, and losses, against one process and against PyTorch's own."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole = torch.randn((4, 7), generator=torch.Generator().manual_seed(4)).double()
    targets = torch.tensor([6, 0, 3, 5])
    found = []
    for layout, (places, _) in LAYOUTS.items():
        x = distribute_tensor(whole, mesh, places).requires_grad_()
        rows = [Replicate() if place.is_shard(1) else place for place in x.placements]
        lse = sd.logsumexp(x)
        same = torch.allclose(lse.full_tensor(), ss.logsumexp(whole), rtol=1e-13)
        found.append((f"{layout}: logsumexp", same and list(lse.placements) == rows and lse.shape == (4,)))
        found.append((f"{layout}: keepdims", sd.logsumexp(x, keepdims=True).full_tensor().shape == (4, 1)))
        entropy = DTensor.from_local(sd.partition(x).entropy, mesh, rows).full_tensor()
        found.append((f"{layout}: partition", torch.allclose(entropy, ss.partition(whole).entropy, rtol=1e-12)))
        labels = distribute_tensor(targets, mesh, rows)
        losses = sd.cross_entropy(x, labels, reduction="none")
        same = torch.allclose(losses.full_tensor(), ss.cross_entropy(whole, targets, reduction="none"), rtol=1e-13)
        found.append((f"{layout}: losses", same))
        total = sd.cross_entropy(x, labels, reduction="sum").full_tensor()
        found.append((f"{layout}: sum", torch.allclose(total, ss.cross_entropy(whole, targets, reduction="sum"))))
        one = whole.clone().requires_grad_()
        ss.cross_entropy(one, targets, reduction="sum").backward()
        total.backward()
        assert isinstance(x.grad, DTensor)
        assert one.grad is not None
        found.append((f"{layout}: gradient", torch.allclose(x.grad.full_tensor(), one.grad, rtol=1e-11)))
    return found


def as_loss_parallel() -> list[tuple[str, bool]]:
    """The mean on a mesh of one axis, and its gradient, as `loss_parallel` has them."""
    mesh = init_device_mesh("cpu", (4,))
    whole = torch.randn((6, 10), generator=torch.Generator().manual_seed(5)).double()
    targets = torch.tensor([6, 0, 3, 5, 9, -100])

    def both(loss: Callable[[Any], Any]) -> tuple[Tensor, Tensor, Any]:
        x = distribute_tensor(whole, mesh, [Shard(1)]).requires_grad_()
        mean = loss(x)
        mean.backward()
        assert isinstance(x.grad, DTensor)
        return mean.full_tensor(), x.grad.full_tensor(), mean.placements

    ours = both(lambda x: sd.cross_entropy(x, targets))
    with loss_parallel():
        theirs = both(lambda x: functional.cross_entropy(x, targets))
    return [
        ("loss", torch.allclose(ours[0], theirs[0], rtol=1e-12)),
        ("gradient", torch.allclose(ours[1], theirs[1], rtol=1e-12, atol=1e-16)),
        ("placements", ours[2] == theirs[2]),
    ]


def refusals() -> list[str]:
    """What DTensors are told that do not fit."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole, targets = torch.randn((4, 8), generator=torch.Generator().manual_seed(6)), torch.zeros(4, dtype=torch.int64)
    tp = distribute_tensor(whole, mesh, [Replicate(), Shard(1)])
    both = distribute_tensor(whole, mesh, [Shard(1), Shard(1)])
    rows = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    partial = DTensor.from_local(whole, mesh, [Replicate(), Partial()])
    labels = distribute_tensor(targets, mesh, [Shard(0), Replicate()])
    calls: tuple[Callable[[], Any], ...] = (
        lambda: sd.softmax(tp, group=mesh["tp"]),
        lambda: sd.softmax(both),
        lambda: sd.logsumexp(partial),
        lambda: sd.cross_entropy(rows, labels),
        lambda: sd.cross_entropy(rows, targets, reduction="sum"),
        lambda: sd.cross_entropy(tp, labels, reduction="sum"),
    )
    return [told(call) for call in calls]
