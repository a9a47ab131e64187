"""What an axis is made of: digits of the axes that were there before it was split, merged or moved.

A view (B, n, 24) → (B, n, 4, 6) splits the last axis into two digits of one root. Merged with B, the digit 4 is still
known to come from the axis that also holds the digit 6: so the 4 are heads, and not entries of the batch.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Root:
    """An axis as it was when first seen. A slice or concatenation of it is a new root of the same family."""

    __slots__ = ("family",)

    def __init__(self, family: Root | None = None) -> None:
        self.family: Root = self if family is None else family


class Digit(NamedTuple):
    """A part of a root: its index runs over `size` values, `step` positions of the root apart."""

    root: Root
    size: int
    step: int


Axis = tuple[Digit, ...]  # outermost digit first; () for an axis of size 1
Axes = tuple[Axis, ...]


def new_axis(size: int, family: Root | None = None) -> Axis:
    """An axis about which nothing else is known."""
    return () if size == 1 else (Digit(Root(family), size, 1),)


def new_axes(shape: Iterable[int]) -> Axes:
    """Axes about which nothing is known."""
    return tuple(new_axis(size) for size in shape)


def length(axis: Iterable[Digit]) -> int:
    """The size of an axis."""
    return math.prod(digit.size for digit in axis)


def families(axis: Iterable[Digit]) -> set[Root]:
    """Which families its digits belong to."""
    return {digit.root.family for digit in axis}


def family_of(axis: Axis) -> Root | None:
    """The one family of an axis; None if it has none or several."""
    found = families(axis)
    return found.pop() if len(found) == 1 else None


def viewed(axes: Axes, shape: Sequence[int], strides: Sequence[int]) -> Axes:
    """Axes after a view, given the shape and strides that the view made of a contiguous tensor."""
    sizes = tuple(tuple(digit.size for digit in axis) for axis in axes)
    found: list[Axis] = []
    for size, source, parts in _recipe(sizes, tuple(shape), tuple(strides)):
        if parts is not None:
            found.append(
                tuple(Digit(axes[i][j].root, many, axes[i][j].step * times) for i, j, many, times in parts)
            )  # fmt: skip
        else:
            found.append(new_axis(size, None if source is None else family_of(axes[source])))
    return tuple(found)


# Of each axis of a view: its size, the axis it is a slice of, if any, and its digits: axis, number, size, step.
_Recipe = tuple[tuple[int, int | None, tuple[tuple[int, int, int, int], ...] | None], ...]


@functools.lru_cache(4096)  # layers repeat the same views
def _recipe(sizes: tuple[tuple[int, ...], ...], shape: tuple[int, ...], strides: tuple[int, ...]) -> _Recipe:
    lengths = [math.prod(axis) for axis in sizes]
    inner = [math.prod(lengths[i + 1 :]) for i in range(len(lengths))]
    cut_short = math.prod(shape) < math.prod(lengths)
    found: list[Any] = []
    for size, stride in zip(shape, strides, strict=True):
        source = next((i for i, step in enumerate(inner) if step <= stride < step * lengths[i]), None)
        if size == 1:
            found.append((1, None, ()))
        elif stride == 0:  # repeated by a broadcast
            found.append((size, None, None))
        elif not cut_short:
            found.append((size, None, _digits(sizes, inner, size, stride) or None))
        elif source is not None and inner[source] == stride and lengths[source] == size:  # all positions of an axis
            found.append((size, None, _digits(sizes, inner, size, stride)))
        else:  # some of them
            found.append((size, source, None))
    return tuple(found)


def _digits(
    sizes: tuple[tuple[int, ...], ...], inner: list[int], size: int, stride: int
) -> tuple[tuple[int, int, int, int], ...]:
    """The digits that an axis of this size and stride runs over; () if it cuts through one."""
    first, last, found = stride, stride * size, []
    for i, (axis, step) in enumerate(zip(sizes, inner, strict=True)):
        at = step * math.prod(axis)
        for j, many in enumerate(axis):
            at //= many
            low, high = max(at, first), min(at * many, last)
            if low >= high:
                continue
            if low % at or high % low or (at * many) % high:
                return ()
            found.append((i, j, high // low, low // at))
    return tuple(found) if math.prod(x[2] for x in found) == size else ()


def cut(axis: Iterable[Digit], at: dict[Root, set[int]]) -> Axis:
    """The same axis, with each digit split where any other tensor splits its root."""
    found: list[Digit] = []
    for digit in axis:
        last = digit.step * digit.size
        inside = [step for step in at.get(digit.root, ()) if digit.step < step < last]
        edges = sorted({digit.step, last, *inside}, reverse=True)
        if any(high % low for high, low in itertools.pairwise(edges)):
            raise ValueError("these views split an axis in ways that do not fit together")
        found += [Digit(digit.root, high // low, low) for high, low in itertools.pairwise(edges) if high > low]
    return tuple(found)


def cuts(axes: Iterable[Axis]) -> dict[Root, set[int]]:
    """Where these axes split their roots."""
    found: dict[Root, set[int]] = {}
    for axis in axes:
        for digit in axis:
            found.setdefault(digit.root, set()).update((digit.step, digit.step * digit.size))
    return found
