"""Where the rows lie: a tensor with this rank's part and its group, or a DTensor, which knows both itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.checks import short
from softscope.distributed._group import process_group

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


@dataclasses.dataclass(frozen=True)
class Placed:
    """This rank's part of x, the group that has the others (None if it is whole), and for a DTensor its layout."""

    part: Any
    group: ProcessGroup | None
    whole: Any = None  # the DTensor
    reduced: tuple[Any, ...] = ()  # the placements of what has one number a row

    def like_x(self, part: Tensor) -> Any:
        """Give a result of x's shape the layout of x."""
        return (
            part if self.whole is None else _dtensor(part, self.whole, tuple(self.whole.shape), self.whole.placements)
        )

    def of_rows(self, part: Tensor, tail: tuple[int, ...] = ()) -> Any:
        """Give a result with one number a row the layout of x without its last axis."""
        if self.whole is None:
            return part
        return _dtensor(part, self.whole, (*self.whole.shape[:-1], *tail), self.reduced)

    def sum_of_rows(self, part: Tensor) -> Any:
        """Give a sum over the rows its layout: the same everywhere, or a part of a sum if the rows are sharded."""
        if self.whole is None:
            return part
        from torch.distributed.tensor import Partial, Replicate

        summed = [place if place.is_replicate() else Partial() for place in self.reduced]
        return _dtensor(part, self.whole, (), tuple(summed or [Replicate()]))

    @property
    def rows_are_sharded(self) -> bool:
        """Tell whether other ranks have other rows."""
        return not all(place.is_replicate() for place in self.reduced)

    def targets(self, targets: Any) -> Any:
        """Return the targets of this rank's rows."""
        if not is_dtensor(targets):
            if self.rows_are_sharded:
                raise ValueError(
                    f"targets must be a DTensor with placements {self.reduced}, as the rows of logits are sharded, but "
                    f"got {short(targets)}; see torch.distributed.tensor.distribute_tensor"
                )
            return targets
        if self.whole is None or targets.placements != self.reduced or targets.device_mesh != self.whole.device_mesh:
            raise ValueError(
                f"targets must be placed like the rows of logits, {self.reduced or 'in a plain tensor'}, but has "
                f"{targets.placements}; call targets.redistribute first"
            )
        return targets.to_local()


def placed(x: Any, group: Any, name: str) -> Placed:
    """Find this rank's part of x and its group."""
    if not is_dtensor(x):
        return Placed(x, process_group(group))
    if group is not None:
        raise ValueError(
            f"group must be None for a DTensor, whose mesh says who has the other parts, but got {short(group)}; "
            f"leave it out"
        )
    from torch.distributed.tensor import Replicate, Shard

    last = x.ndim - 1
    if strange := [place for place in x.placements if type(place) not in (Shard, Replicate)]:
        raise ValueError(
            f"{name} must be sharded or replicated, but has the placement {strange[0]}; call {name}.redistribute first"
        )
    axes = [axis for axis, place in enumerate(x.placements) if place.is_shard(last)]
    if len(axes) > 1:
        raise ValueError(
            f"{name} must have its last axis sharded over one mesh axis, but it is over {len(axes)}: {x.placements}; "
            f"flatten them into one mesh axis"
        )
    reduced = tuple(Replicate() if axis in axes else place for axis, place in enumerate(x.placements))
    return Placed(x.to_local(), x.device_mesh.get_group(axes[0]) if axes else None, x, reduced)


def is_dtensor(x: Any) -> bool:
    """Tell whether x is a DTensor, without importing what nobody used."""
    import sys

    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(x, tensors.DTensor)


def _dtensor(part: Tensor, like: Any, shape: tuple[int, ...], placements: tuple[Any, ...]) -> Any:
    from torch.distributed.tensor import DTensor

    stride = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        stride[axis - 1] = stride[axis] * shape[axis]
    return DTensor.from_local(
        part, like.device_mesh, placements, run_check=False, shape=torch.Size(shape), stride=tuple(stride)
    )
