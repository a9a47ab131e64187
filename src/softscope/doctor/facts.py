"""What is written beside the readings: versions and the model's class; no arguments, no environment."""

from __future__ import annotations

import platform
from typing import Any

import torch
from torch import nn

import softscope


def of(model: nn.Module) -> dict[str, Any]:
    """Facts about the run that a reader of its record wants to know."""
    inner = getattr(model, "_orig_mod", model)
    first = next(iter(model.parameters()), None)
    return {
        "softscope": softscope.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "model": type(inner).__name__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": "cpu" if first is None else first.device.type,
    }
