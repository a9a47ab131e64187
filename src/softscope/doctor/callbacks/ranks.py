"""Which ranks of a training are read, and which of them records."""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple

Group = Literal["all"] | Any  # "all", a ProcessGroup, a DeviceMesh, or None


class Role(NamedTuple):
    """What this process does."""

    attaches: bool  # it has a probe
    records: bool  # it gets the snapshots
    options: dict[str, Any]  # for the probe


ALONE, IDLE = Role(True, True, {}), Role(False, False, {})


def checked(group: Group) -> Group:
    """Refuse another word than "all"; whether a group fits can only be seen when training begins."""
    if isinstance(group, str) and group != "all":
        raise ValueError(f'group must be "all", a process group, a mesh or None, but got {group!r}; pass one of them')
    return group


def role(group: Group, first: bool = True) -> Role:
    """The role of this process: all ranks of the group attach, and its first rank records.

    Where there are several such groups, as with a mesh's axis, only the one that holds rank 0 is read: they would all
    record into the same file.

    Args:
        group: "all": all ranks, if there are several. None: the first rank, alone. Otherwise the ranks of this group.
        first: whether the trainer says that this process is its first; counts if `torch.distributed` was not started.

    Examples:
        >>> role("all"), role("all", first=False).attaches
        (Role(attaches=True, records=True, options={}), False)
    """
    torch = sys.modules.get("torch")  # where it was never imported, nothing runs on several ranks
    dist = None if torch is None else torch.distributed
    if dist is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return ALONE if first else IDLE
    if group is None:
        return ALONE if dist.get_rank() == 0 else IDLE
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return IDLE
    from softscope.distributed._group import process_group

    found = process_group(None if group == "all" else group)
    if 0 not in dist.get_process_group_ranks(found):
        return IDLE
    return Role(True, dist.get_rank(found) == 0, {"group": found})
