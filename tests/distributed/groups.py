"""What the tests of groups run on every rank."""

from __future__ import annotations

from typing import Any

from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from softscope.distributed._group import process_group


def sizes() -> list[int]:
    """The sizes of groups given in each way."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    line = init_device_mesh("cpu", (4,))
    pair = dist.new_group([2 * (dist.get_rank() // 2), 2 * (dist.get_rank() // 2) + 1], use_local_synchronization=True)
    given: list[Any] = [None, dist.group.WORLD, pair, mesh["tp"], (mesh, "dp"), line]
    return [process_group(group).size() for group in given]


def refusals() -> list[str]:
    """What bad groups are told."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    first = dist.new_group([0])
    told = []
    for group in (mesh, (mesh, "cp"), "world", *([] if dist.get_rank() == 0 else [first])):
        try:
            process_group(group)
        except (TypeError, ValueError) as error:
            told.append(str(error))
    return told
