"""Facts about a run besides its readings: versions, seed, the model's class. Never argv or environment variables."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope.doctor.listen.config_of import setting

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
    return {
        "model": type(module).__name__,
        "scale_meant": _scale(getattr(module, "config", None)),
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": "cpu" if first is None else first.device.type,
    }


def _scale(config: Any) -> float | None:
    """The factor on q·k that a configuration sets, as those of Granite, Gemma and DeBERTa do; None if it sets none."""
    times, size = (setting(config, name) for name in ("attention_multiplier", "query_pre_attn_scalar"))
    if isinstance(times, int | float) and times > 0:
        return float(times)
    width, heads = setting(config, "hidden_size"), setting(config, "num_attention_heads")
    if (
        str(setting(config, "model_type")).startswith("deberta")
        and setting(config, "relative_attention")
        and width
        and heads
    ):
        terms = 1 + len({"c2p", "p2c"} & set(setting(config, "pos_att_type") or ()))  # it adds that many products
        return float(terms * width // heads) ** -0.5
    return float(size) ** -0.5 if isinstance(size, int | float) and size > 0 else None
