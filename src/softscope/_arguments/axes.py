"""Move one, several or all axes to the end as a single row axis, and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from softscope._arguments.arrays import Array, namespace
from softscope._arguments.checks import short

if TYPE_CHECKING:
    from collections.abc import Sequence

Axis = int | tuple[int, ...] | None


class Rows:
    """The layout of an array as rows along `axis`.

    >>> import numpy as np
    >>> rows = Rows((2, 3, 4), axis=(0, 2))
    >>> rows.bring(np.zeros((2, 3, 4))).shape
    (3, 8)
    """

    def __init__(self, shape: Sequence[int], axis: Axis):
        self.shape = tuple(shape)
        self.axes = normalise_axis(axis, len(self.shape))
        self.lead = tuple(size for i, size in enumerate(self.shape) if i not in self.axes)
        self.sizes = tuple(self.shape[i] for i in self.axes)
        self.n = math.prod(self.sizes)
        self.kept_shape = tuple(1 if i in self.axes else size for i, size in enumerate(self.shape))

    def bring(self, x: Array) -> Array:
        """Move the row axes of x to the end and merge them: (…, n)."""
        ends = range(-len(self.axes), 0)
        moved = namespace(x).moveaxis(x, self.axes, tuple(ends)) if self.axes else x
        return moved.reshape((*self.lead, self.n))

    def bring_kept(self, x: Array, name: str) -> Array:
        """Bring an array that broadcasts with the row axes kept as 1, such as a temperature per row, to (…, 1)."""
        kept = self._fit(x, self.kept_shape, name, "the input's shape with the axis kept as 1")
        return self.bring_one(kept)

    def bring_one(self, x: Array) -> Array:
        """Bring an array of the kept shape to (…, 1)."""
        return x.reshape((*self.lead, 1))

    def bring_broadcast(self, x: Array, name: str) -> Array:
        """Bring an array that broadcasts to the whole shape, such as `where`, to (…, n)."""
        return self.bring(self._fit(x, self.shape, name, "the input's shape"))

    def restore(self, y: Array) -> Array:
        """Restore (…, n) to the original shape."""
        y = y.reshape((*self.lead, *self.sizes))
        ends = range(-len(self.axes), 0)
        return namespace(y).moveaxis(y, tuple(ends), self.axes) if self.axes else y.reshape(self.shape)

    def _fit(self, x: Array, shape: tuple[int, ...], name: str, what: str) -> Array:
        try:
            return namespace(x).broadcast_to(x, shape)
        except (ValueError, RuntimeError):
            raise ValueError(
                f"{name} must broadcast to {what}, {shape}, but has shape {tuple(x.shape)}; reshape it"
            ) from None


def one_axis(axis: Any) -> int:
    """Return the axis if it is a single int; refuse anything else."""
    if axis is None or isinstance(axis, tuple):
        raise ValueError(f"axis must be one axis, but got {short(axis)}; pass an int")
    return int(axis) if hasattr(axis, "__index__") and not isinstance(axis, bool) else axis


def normalise_axis(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes as sorted non-negative ints; a 0-d array counts as one row with one entry.

    >>> normalise_axis(-1, 3), normalise_axis(None, 2), normalise_axis((2, 0), 3)
    ((2,), (0, 1), (0, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    wanted = axis if isinstance(axis, tuple) else (axis,)
    axes = []
    for a in wanted:
        if isinstance(a, bool) or not hasattr(a, "__index__"):
            raise TypeError(
                f"axis must be an int, a tuple of ints or None, but got {short(axis)}; pass axis=-1, for example"
            )
        a = a.__index__()
        if not -max(ndim, 1) <= a < max(ndim, 1):
            raise ValueError(
                f"axis must lie in [{-max(ndim, 1)}, {max(ndim, 1)}) for an array of {ndim} dimensions, "
                f"but got {short(a)}; pass one of these or None"
            )
        axes.append(a % max(ndim, 1))
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis must not name a dimension twice, but got {short(axis)}; remove the repeat")
    return tuple(sorted(axes)) if ndim else ()
