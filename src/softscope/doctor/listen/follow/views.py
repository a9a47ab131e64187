"""Operations that move, split, merge, repeat or cut axes, without computing anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softscope.doctor.listen.follow.axes import Axes, Axis, Digit, Root, family_of, new_axis, viewed
from softscope.doctor.listen.follow.traces import Trace, remember, trace_of, trace_or_new

MOST = 256  # pieces of a split that are followed: nothing has so many heads, but a loop over a tensor has more rows


def view(original: Callable[..., Any], result: Any, x: Any, *args: Any, **named: Any) -> None:
    """Follow a view: the same view of a stand-in without memory shows by its strides which axis went where."""
    if not isinstance(x, Tensor) or result is x or (not isinstance(result, Tensor) and len(result) > MOST):
        return
    trace = trace_or_new(x)
    there = _replayed(original, tuple(x.shape), args, named)
    if isinstance(result, Tensor):
        _follow(result, there[0], trace)
        return
    split = object()
    for i, (part, its) in enumerate(zip(result, there, strict=True)):
        _follow(part, its, trace, (split, i, len(result)))


_Strides = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides
_known: dict[Any, list[_Strides]] = {}


def _replayed(
    original: Callable[..., Any], shape: tuple[int, ...], args: tuple[Any, ...], named: dict[str, Any]
) -> list[_Strides]:
    """Shapes and strides that a view makes of a contiguous tensor of this shape."""
    key = _key((original, shape, args, tuple(named.items())))
    found = None if key is None else _known.get(key)
    if found is None:
        there = original(torch.empty(shape, device="meta"), *args, **named)
        parts = [there] if isinstance(there, Tensor) else there
        found = [(tuple(part.shape), part.stride()) for part in parts]
        if key is not None:
            if len(_known) >= 4096:
                _known.clear()
            _known[key] = found
    return found


def _key(value: Any) -> Any:
    """The arguments of a view as a key; None if a tensor is among them."""
    if isinstance(value, tuple | list):
        parts = tuple(map(_key, value))
        return None if None in parts else parts
    if isinstance(value, slice):
        return _key(("slice", value.start, value.stop, value.step))
    if value is None:
        return "None"
    return None if isinstance(value, Tensor) else value


def _follow(result: Tensor, there: _Strides, trace: Trace, piece: tuple[object, int, int] | None = None) -> None:
    shape, strides = there
    if result.shape == shape:
        remember(result, trace._replace(axes=viewed(trace.axes, shape, strides), unshifted=None, piece=piece))


def concatenated(result: Tensor, tensors: Any, dim: Any = 0, **named: Any) -> None:
    """Follow a concatenation. All pieces of a split, end to end, are one more digit: heads, if features were split."""
    dim = named.get("axis", named.get("dim", dim)) % result.ndim
    traces = [trace_of(x) for x in tensors]
    first = next((trace for trace in traces if trace is not None and trace.origin is not None), traces[0])
    if first is None or len(first.axes) != result.ndim:
        return
    known = [trace for trace in traces if trace is not None]
    axis = _end_to_end(known, dim) if len(known) == len(traces) else None
    if axis is None:
        found = {family_of(trace.axes[dim]) for trace in known if trace.axes[dim]}
        axis = new_axis(result.shape[dim], found.pop() if len(found) == 1 else family_of(first.axes[dim]))
    same = {trace.factor for trace in known} == {first.factor} and len(known) == len(traces)
    factor = first.factor if same or first.origin is not None else 1.0
    axes = (*first.axes[:dim], axis, *first.axes[dim + 1 :])
    remember(result, Trace(axes, factor, first.origin, first.capped))


def stacked(result: Tensor, tensors: Any, dim: Any = 0, **named: Any) -> None:
    """Follow a stack of all pieces of a split: the new axis counts them."""
    dim = named.get("dim", dim) % result.ndim
    traces = [trace_of(x) for x in tensors]
    first = traces[0]
    if first is None or first.piece is None or any(trace is None for trace in traces):
        return
    axis = _counted([trace for trace in traces if trace is not None])
    if axis is not None:
        axes: Axes = (*first.axes[:dim], axis, *first.axes[dim:])
        remember(result, Trace(axes, first.factor))


def _end_to_end(traces: list[Trace], dim: int) -> Axis | None:
    counted = _counted(traces)
    if counted is None or any(trace.axes[dim] != traces[0].axes[dim] for trace in traces):
        return None
    return counted + traces[0].axes[dim]


def _counted(traces: list[Trace]) -> Axis | None:
    """The axis that numbers all pieces of one split, in the family of the axis that was split."""
    pieces = [trace.piece for trace in traces]
    first = pieces[0]
    if first is None or [(p[0], p[1]) for p in pieces if p] != [(first[0], i) for i in range(first[2])]:
        return None
    if len(pieces) == 1:
        return ()
    common = {digit.root for axis in traces[1].axes for digit in axis}  # what all pieces have was not cut
    cut = {digit.root.family for axis in traces[0].axes for digit in axis if digit.root not in common}
    return (Digit(Root(cut.pop()), len(pieces), 1),) if len(cut) == 1 else new_axis(len(pieces))
