"""Where in the model a call comes from: the path of the innermost module being called.

We read it from the interpreter's stack. Hooks on every module would give the same answer, but PyTorch leaves its fast
path when a module has a hook (the probe would then change the run), and a compiler sees hooks.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from torch import nn

# The code object of the frames that call a module, and the local variable that holds the module.
_CALL = nn.Module._call_impl.__code__
# Wrappers whose part of the path carries no information.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def paths(model: nn.Module) -> dict[int, str]:
    """The path of each module, by id; a module used in several places gets its first path."""
    parallel = isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel)
    found = {}
    for name, module in model.named_modules():
        parts = [part for part in name.split(".") if part and part not in _WRAPPERS]
        if parallel and parts[:1] == ["module"]:
            del parts[0]
        found[id(module)] = ".".join(parts) or type(model).__name__
    return found


def site_name(place: tuple[str, Any], below: str, model: nn.Module) -> str:
    """Name of the site: the module's path, and `below` it if the call belongs to a submodule that was not called.

    The whole model's name is no part of a submodule's path.
    """
    path, module = place
    return below.lstrip(".") if below and module is model else path + below


def innermost(known: dict[int, str]) -> tuple[str, Any] | None:
    """Path and module of the innermost call of a known module; None outside all of them."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            module = frame.f_locals["self"]
            if id(module) in known and not isinstance(module, nn.Softmax | nn.Dropout):
                return known[id(module)], module
        frame = frame.f_back
    return None


def calling() -> Any:
    """The innermost module being called, of whatever model; None outside all modules."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            module = frame.f_locals["self"]
            if not isinstance(module, nn.Softmax | nn.Dropout):
                return module
        frame = frame.f_back
    return None
