"""What a record says of its run besides readings: versions, model class, seed. Never argv or environment."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

import softscope


def facts(model: Any = None) -> dict[str, Any]:
    """Versions of what decides the numbers; of a model its class and size; of PyTorch, if it is loaded, its seed."""
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
        found["seed"] = int(sys.modules["torch"].initial_seed())
    if model is not None:
        found["model"] = f"{type(model).__module__}.{type(model).__qualname__}"
        if hasattr(model, "parameters"):
            found["parameters"] = sum(int(p.numel()) for p in model.parameters())
    return found
