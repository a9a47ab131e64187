"""The dtypes in which tensors are computed."""

from __future__ import annotations

from typing import Any

import torch

_NO_FLOAT64 = ("mps",)


def row_dtype(x: torch.Tensor) -> torch.dtype:
    """Return the dtype in which the rows of x are computed: float64 on the CPU, at least float32 elsewhere.

    On the CPU, float64 costs time but meets the error bounds; on accelerators, it would be tens of times slower than
    float32.
    """
    if x.device.type == "cpu":
        return torch.float64
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def widest(x: torch.Tensor) -> torch.dtype:
    """Return the dtype of states and readings: float64, or float32 on devices without float64."""
    return torch.float32 if x.device.type in _NO_FLOAT64 else torch.float64


def like(value: Any, dtype: torch.dtype) -> Any:
    """Return a number as is, a tensor in the given dtype."""
    return value.to(dtype) if isinstance(value, torch.Tensor) else value
