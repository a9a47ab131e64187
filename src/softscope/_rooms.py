"""Which room computes: NumPy's (engine or definition) or torch's (differentiable tensor operations)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._arrays import Array, is_tensor

if TYPE_CHECKING:
    from types import ModuleType


def room_of(x: Array) -> ModuleType | Any:
    """The module with the functions for x; both offer the same names on rows in the last axis."""
    if is_tensor(x):
        from softscope import _torch

        return _torch
    from softscope import _numpy

    return _numpy
