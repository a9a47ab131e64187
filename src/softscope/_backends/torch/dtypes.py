"""Which dtype computes what."""

from __future__ import annotations

from typing import Any

import torch

_NO_FLOAT64 = ("mps",)


def row_dtype(x: torch.Tensor) -> torch.dtype:
    """The dtype in which the rows of x are computed: float64 on the CPU, at least float32 elsewhere.

    On the CPU that costs time and buys the bounds; on accelerators float64 would cost tens of times float32.
    """
    if x.device.type == "cpu":
        return torch.float64
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def widest(x: torch.Tensor) -> torch.dtype:
    """The dtype of states and readings: float64, or float32 where the device has none."""
    return torch.float32 if x.device.type in _NO_FLOAT64 else torch.float64


def like(value: Any, dtype: torch.dtype) -> Any:
    """A number as it is, a tensor in the given dtype."""
    return value.to(dtype) if isinstance(value, torch.Tensor) else value
