"""What is known of the tensors of the pass that runs now, kept as long as the tensors live."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softscope.doctor.listen.follow.axes import Axes, Root, new_axis


class Trace(NamedTuple):
    """What is known of a tensor.

    Attributes:
        axes: what its axes are made of.
        factor: the number it was multiplied by since it was first seen; None if that is not one number. Of logits, the
            number before q·k.
        origin: the `Product` of q and k it comes from, or what stands between that and weights (`stages`).
        capped: of logits behind a tanh, the number before q·k inside it; `factor` is then the number outside.
        unshifted: of logits less their maximum, the logits.
        piece: which part of which split it is: (split, number, of how many).
    """

    axes: Axes
    factor: float | None = 1.0
    origin: Any = None
    capped: float | None = None
    unshifted: Tensor | None = None
    piece: tuple[object, int, int] | None = None


class _Local(threading.local):
    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Tensor], Trace]] = {}
        self.unknown = False


_local = _Local()


def trace_of(x: Any) -> Trace | None:
    """What is known of this tensor; None if nothing."""
    entry = None if _local.unknown else _local.known.get(id(x))
    return entry[1] if entry is not None and entry[0]() is x else None


def trace_or_new(x: Tensor) -> Trace:
    """What is known of this tensor; from now on, at least that its axes are its axes."""
    found = trace_of(x)
    if found is None or len(found.axes) != x.ndim:
        # A parameter's axes are features: whatever becomes of them is neither batch nor position.
        features = Root() if is_parameter(x) else None
        found = Trace(tuple(new_axis(size, features) for size in x.shape))
        remember(x, found)
    return found


def remember(x: Tensor, trace: Trace) -> None:
    """Know this of the tensor until it dies."""
    known, key = _local.known, id(x)

    def gone(ref: weakref.ref[Tensor]) -> None:
        entry = known.get(key)
        if entry is not None and entry[0] is ref:
            del known[key]

    known[key] = (weakref.ref(x, gone), trace)


def forget(x: Any) -> None:
    """Know nothing of it any more."""
    _local.known.pop(id(x), None)


def forget_all() -> None:
    """The pass is over."""
    _local.known = {}


@contextlib.contextmanager
def unknown() -> Iterator[None]:
    """Know nothing for a while, as in a pass that is not read."""
    before, _local.unknown = _local.unknown, True
    try:
        yield
    finally:
        _local.unknown = before


def is_parameter(x: Tensor) -> bool:
    """Whether it is a parameter or a view of one, such as a transposed weight."""
    return isinstance(x, nn.Parameter) or isinstance(x._base, nn.Parameter)


def as_number(value: Any) -> float | None:
    """A factor as a number; None for several numbers, or for one that would have to be waited for."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Tensor) and value.numel() == 1 and value.device.type == "cpu" and not _virtual(value):
        return float(value.detach())
    return None


def _virtual(x: Tensor) -> bool:
    return type(x) not in (Tensor, nn.Parameter) or torch._C._functorch.is_functorch_wrapped_tensor(x)
