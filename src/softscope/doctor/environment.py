"""Facts about a run besides its readings: versions, seed, the model's class. Never argv or environment variables."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope

if TYPE_CHECKING:
    from torch import nn


def of_run() -> dict[str, Any]:
    """Versions of the packages that affect the numbers; PyTorch and transformers only if they are loaded."""
    found: dict[str, Any] = {
        "softscope": softscope.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in ("torch", "transformers"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    if "torch" in sys.modules:
        found["torch_seed"] = int(sys.modules["torch"].initial_seed())
    return found


def of_model(model: nn.Module) -> dict[str, Any]:
    """The model's class, size and device."""
    module = getattr(model, "_orig_mod", model)
    first = next(iter(model.parameters()), None)
    config = getattr(module, "config", None)
    return {
        "model": type(module).__name__,
        # Granite, Gemma and GPT-2's options: a scale other than 1/√d is meant.
        "scale_is_set": any(
            getattr(config, name, None)
            for name in ("attention_multiplier", "query_pre_attn_scalar", "scale_attn_by_inverse_layer_idx")
        ),
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": "cpu" if first is None else first.device.type,
    }
