"""What a record says of its run from the start: versions and PyTorch's seed. Never argv or environment.

What is known of the model comes with the probe's history.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

import softscope


def facts() -> dict[str, Any]:
    """Versions of what decides the numbers; of PyTorch and transformers, if they are loaded."""
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
