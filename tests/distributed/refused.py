"""What the tests of refusals run on every rank."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

import softscope as ss
from distributed import doctored


def _told(net: nn.Module, **probing: Any) -> tuple[str, str]:
    """What entering the probe raises."""
    try:
        with ss.probe(net, **({"group": dist.group.WORLD, "patience": 2.0} | probing)):
            return "", ""
    except Exception as error:
        return type(error).__name__, str(error)


def other_model() -> tuple[str, str]:
    """The last rank has another model."""
    last = dist.get_rank() == dist.get_world_size() - 1
    return _told(nn.TransformerEncoderLayer(8, 2, 8) if last else doctored.model())


def other_schedule() -> tuple[str, str]:
    """Rank 1 reads other steps."""
    return _told(doctored.model(), every=2 if dist.get_rank() == 1 else 3)


def store_timeout() -> tuple[float, float]:
    """The timeout of training's own store, before and after a probe."""
    store = dist.distributed_c10d._get_default_store()
    before = store.timeout.total_seconds()
    with ss.probe(doctored.model(), group=dist.group.WORLD):
        pass
    return before, store.timeout.total_seconds()


def comes_late() -> str:
    """Rank 2 comes when the others' patience has passed, but not the time for opening."""
    time.sleep(3.5 if dist.get_rank() == 2 else 0.0)
    return _told(doctored.model(), patience=1.0)[1]


def shards_of_the_layers() -> list[Any]:
    """FSDP2 around each linear map, whose parameters are sharded again when attention is called."""
    from torch.distributed.fsdp import fully_shard

    net: Any = doctored.model()
    for part in net.modules():
        if isinstance(part, nn.Linear):
            fully_shard(part)
    fully_shard(net)
    with ss.probe(net, group=dist.group.WORLD) as scope:
        net(torch.zeros(1, 8, dtype=torch.long))
    return [site.heads for site in scope.sites]


def trials() -> list[str]:
    """What a trial on the first rank alone gives: of copies in DistributedDataParallel with buffers, and of shards."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    found = []
    for wrap in (DistributedDataParallel, fully_shard):
        net: Any = doctored.model()
        net.register_buffer("seen", torch.zeros(1))
        net = wrap(net)
        batch = doctored.batches(1)[0].inputs
        with ss.probe(net, every=1, group=dist.group.WORLD) as scope:
            doctored.train(net, scope, 2, lambda x: x)
            if dist.get_rank() == 0:
                heads = {"blocks.0.attention": [0]}
                try:
                    tried = scope.trial(batch, loss=lambda y, _: y.square().mean(), heads=heads)
                    found.append(type(tried["blocks.0.attention", 0]).__name__)
                except RuntimeError as error:
                    found.append(str(error))
            dist.barrier()
    return found


def missing() -> tuple[str, str, float]:
    """Rank 1 does not come."""
    began = time.monotonic()
    found = ("", "") if dist.get_rank() == 1 else _told(doctored.model(), patience=0.5)
    dist.barrier()
    return *found, time.monotonic() - began


def twice() -> int:
    """A second probe after the first, and one inside another."""
    net = doctored.model()
    x = torch.zeros(1, 8, dtype=torch.long)
    for _ in range(2):
        with ss.probe(net, group=dist.group.WORLD) as scope:
            net(x)
    with ss.probe(net, group=dist.group.WORLD) as outer, ss.probe(net, group=dist.group.WORLD) as inner:
        net(x)
    return len(scope.history().snapshots) + len(outer.history().snapshots) + len(inner.history().snapshots)


def part_of_the_ranks() -> int:
    """Only ranks 1 and 3 are read."""
    some = dist.new_group([1, 3])
    if dist.get_rank() not in (1, 3):
        return -1
    net = doctored.model()
    with ss.probe(net, group=some) as scope:
        net(torch.zeros(1, 8, dtype=torch.long))
    return len(scope.history().snapshots)


def never_left() -> str:
    """A probe that is entered and never left."""
    scope = ss.probe(doctored.model(), group=dist.group.WORLD).__enter__()
    scope.model(torch.zeros(1, 8, dtype=torch.long))
    return "fine"


def nothing_heard() -> list[Any]:
    """A model without attention."""
    net = nn.Linear(2, 2)
    with ss.probe(net, every=1, group=dist.group.WORLD) as scope:
        net(torch.ones(1, 2))
        scope.step()
    return [len(scope.history().snapshots), scope.ranks.lost]
