"""What the tests of the doctor run on every rank: the same training in one process and in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import softscope as ss
from softscope import tasks
from softscope.doctor.ranks.link import Link
from softscope.doctor.read.snapshot import History
from softscope.doctor.record.schema import sites_as_text

BATCH = 16


def model(**options: Any) -> nn.Module:
    """The same on every rank, in float64: in float32, a run in another order of additions soon is another run."""
    attention = tasks.AttentionOptions(**options)
    return tasks.SmallTransformer(vocabulary=9, length=16, d=32, heads=4, layers=2, options=attention).double()


def batches(steps: int) -> list[Any]:
    """The same on every rank."""
    generator = torch.Generator().manual_seed(1)
    return [tasks.copy_batch(BATCH, length=8, vocabulary=8, generator=generator) for _ in range(steps)]


def loss_of(logits: Tensor, target: Tensor) -> Tensor:
    """The mean over the positions that ask for an answer."""
    return functional.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=tasks.IGNORED)


def train(
    net: nn.Module, scope: Any, steps: int, share: Callable[[Tensor], Tensor], weight: float = 1.0, each: Any = None
) -> None:
    """A plain loop over this rank's share of each batch."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for number, batch in enumerate(batches(steps)):
        if each is not None:
            each(number)
        inputs = [share(x) for x in batch.inputs]
        target = share(batch.target)
        loss = weight * loss_of(net(*inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scope.step(loss=loss.item())


def alone(steps: int, options: dict[str, Any], **probing: Any) -> History:
    """The run in one process."""
    net = model(**options)
    with ss.probe(net, **probing) as scope:
        train(net, scope, steps, lambda x: x)
    return scope.history()


def shares(sizes: Sequence[int], rank: int | None = None) -> tuple[Callable[[Tensor], Tensor], float]:
    """This rank's rows, and the weight that makes the average over ranks the mean over all rows."""
    rank = dist.get_rank() if rank is None else rank
    first = sum(sizes[:rank])
    return lambda x: x[first : first + sizes[rank]], sizes[rank] * len(sizes) / BATCH


def data_parallel(
    steps: int, sizes: Sequence[int], probing: dict[str, Any], options: dict[str, Any]
) -> tuple[History, History] | None:
    """On the first rank: the run on all ranks, and the run in one process."""
    share, weight = shares(sizes)
    net = DistributedDataParallel(model(**options))
    with ss.probe(net, group=dist.group.WORLD, **probing) as scope:
        train(net, scope, steps, share, weight)
    assert not scope.ranks.lost
    if dist.get_rank() > 0:
        assert not scope.history().snapshots
        return None
    return scope.history(), alone(steps, options, **probing)


def messages(steps: int) -> tuple[list[int], dict[int, int], int]:
    """The bytes of all messages that this rank's probe sent, those that it tells by step, and those of the sites."""
    ranks = dist.get_world_size()
    share, weight = shares([BATCH // ranks] * ranks)
    net = DistributedDataParallel(model())
    found, send = [], Link.send

    def noted(link: Link, data: bytes, timeout: float) -> None:
        found.append(len(data))
        send(link, data, timeout)

    with mock.patch.object(Link, "send", noted), ss.probe(net, group=dist.group.WORLD) as scope:
        train(net, scope, steps, share, weight)
    assert not scope.ranks.lost
    sites = [sites_as_text(scope.history().sites)]
    dist.broadcast_object_list(sites)
    return found, scope.ranks.sent, len(sites[0].encode())


def fully_sharded(steps: int, sizes: Sequence[int]) -> tuple[History, History] | None:
    """The same with parameters that are sharded over the ranks."""
    from torch.distributed.fsdp import fully_shard

    share, weight = shares(sizes)
    net: Any = model()
    for block in net.blocks:
        fully_shard(block)
    fully_shard(net)
    with ss.probe(net, group=dist.group.WORLD) as scope:
        train(net, scope, steps, share, weight)
    assert not scope.ranks.lost
    return (scope.history(), alone(steps, {})) if dist.get_rank() == 0 else None


def tensor_parallel(steps: int) -> tuple[History, History] | None:
    """The same with heads that are shared out among the ranks."""
    from torch.distributed.device_mesh import init_device_mesh

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    share_out(net, mesh)
    with ss.probe(net, group=mesh) as scope:
        train(net, scope, steps, lambda x: x)
    assert not scope.ranks.lost
    return (scope.history(), alone(steps, {})) if dist.get_rank() == 0 else None


def both_parallel(steps: int, sizes: Sequence[int]) -> tuple[History, History] | None:
    """Heads are shared out among pairs of ranks, and each pair has its own rows."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net: Any = model()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "heads"))
    share_out(net, mesh["heads"])
    for block in net.blocks:
        fully_shard(block, mesh=mesh["rows"])
    fully_shard(net, mesh=mesh["rows"])
    share, weight = shares(sizes, mesh.get_local_rank("rows"))
    with ss.probe(net, group=dist.group.WORLD) as scope:
        train(net, scope, steps, share, weight)
    assert not scope.ranks.lost
    return (scope.history(), alone(steps, {})) if dist.get_rank() == 0 else None


def share_out(net: Any, mesh: Any) -> None:
    """Share out the heads of each layer."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for block in net.blocks:
        plan: Any = {f"attention.{x}": ColwiseParallel() for x in ("w_q", "w_k", "w_v")}
        parallelize_module(block, mesh, plan | {"attention.w_o": RowwiseParallel()})
        block.attention.heads //= mesh.size()
