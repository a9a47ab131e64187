"""Which room computes: NumPy's (engine or definition) or torch's (differentiable tensor operations)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _kernels
from softscope._arrays import Array, is_tensor, tracing

if TYPE_CHECKING:
    from types import ModuleType


def room_of(x: Array) -> ModuleType | Any:
    """The module with the functions for x; both offer the same names on rows in the last axis."""
    if is_tensor(x):
        from softscope import _torch

        return _torch
    from softscope import _numpy

    return _numpy


def plain(name: str, x: Array, temperature: Any, out: Array | None = None, *extra: Any) -> Array | None:
    """The common case without ceremony: one temperature, the last axis; None where more has to be asked."""
    if type(x) is np.ndarray:
        return _kernels.plain(name, x, temperature, out, *extra)
    # The first tensor opens the room. An import in each call would be slow, and a compiler must not see it change.
    room = None if extra or tracing() else sys.modules.get("softscope._torch")
    return None if room is None else room.plain(name, x, temperature, out)
