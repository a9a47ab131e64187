"""Which dtype computes what."""

from __future__ import annotations

from typing import Any

import torch

_NO_FLOAT64 = ("mps",)


def inner(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which rows are computed: half precision goes through float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def widest(x: torch.Tensor) -> torch.dtype:
    """The dtype of states and readings: float64, or float32 where the device has none."""
    return torch.float32 if x.device.type in _NO_FLOAT64 else torch.float64


def like(value: Any, dtype: torch.dtype) -> Any:
    """A number as it is, a tensor in the given dtype."""
    return value.to(dtype) if isinstance(value, torch.Tensor) else value
