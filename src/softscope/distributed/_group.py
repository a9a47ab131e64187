"""Which processes work together: what a user passes as `group`, as the process group it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist

from softscope._arguments.checks import short

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

START = "start the program with torchrun, or call torch.distributed.init_process_group first"


def process_group(group: Any) -> ProcessGroup:
    """The process group that `group` stands for: one, a DeviceMesh of one axis, (mesh, "axis"), or None for all ranks.

    Raises:
        RuntimeError: `torch.distributed` is missing or was not started.
        TypeError: `group` is none of these.
        ValueError: the mesh has no such axis, or several, or this rank is not in the group.
    """
    if not dist.is_available():
        raise RuntimeError("group needs torch.distributed, but this build of PyTorch has none; install one that has it")
    if not dist.is_initialized():
        raise RuntimeError(f"group needs torch.distributed, which was not started; {START}")
    found = dist.group.WORLD if group is None else _of_mesh(group)
    if found is dist.GroupMember.NON_GROUP_MEMBER or dist.get_rank(found) < 0:
        raise ValueError(
            f"group must contain this process, but rank {dist.get_rank()} is not in it; call this on the group's ranks"
        )
    assert found is not None
    return found


def _of_mesh(group: Any) -> Any:
    from torch.distributed.device_mesh import DeviceMesh

    mesh, axis = group if isinstance(group, tuple) and len(group) == 2 else (group, None)
    if isinstance(mesh, DeviceMesh):
        names = mesh.mesh_dim_names or ()
        if axis is not None and axis not in names:
            raise ValueError(
                f"group must name an axis of its mesh, but got {axis!r}; the mesh has {names or 'no names'}"
            )
        if axis is None and mesh.ndim != 1:
            one = repr(names[0]) if names else "axis"
            raise ValueError(f"group must be a mesh of one axis, but got one of {mesh.ndim}; choose one: mesh[{one}]")
        return mesh.get_group(axis)
    if isinstance(group, dist.ProcessGroup) or group is dist.GroupMember.NON_GROUP_MEMBER:
        return group
    raise TypeError(
        f"group must be a ProcessGroup, a DeviceMesh or None, but got {short(group)}; see torch.distributed.new_group"
    )


def device_of(group: ProcessGroup) -> torch.device:
    """The device whose tensors the group's backend sends."""
    return (
        torch.device("cpu") if "gloo" in dist.get_backend(group) else torch.device("cuda", torch.cuda.current_device())
    )
