"""The functions that compute attention in other people's models, and how to describe a call of each.

There is one file per kind of function. `all_patches(model)` lists the patches for a model.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType

from torch import nn

from softscope.doctor.listen.functions import (
    aten,
    explicit_softmax,
    flex,
    followed,
    huggingface,
    sdpa,
    softscope_attention,
    torch_multihead,
)
from softscope.doctor.listen.patches import Function, Patch

__all__ = ["all_patches"]


def all_patches(model: nn.Module) -> list[Patch]:
    """Every patch through which this model's attention calls can be observed."""
    homes = _homes(model)
    here = [*flex.patches(model, homes), *huggingface.patches(homes), *softscope_attention.sharded_patches()]
    patches = [*_of_every_model(), *here]
    return patches + _bound_early(patches, homes)


@functools.cache
def _of_every_model() -> list[Patch]:
    return [
        *sdpa.patches(),
        *aten.patches(),
        *explicit_softmax.softmax_patches(),
        *followed.patches(),
        *torch_multihead.patches(),
        *softscope_attention.patches(),
    ]


def _homes(model: nn.Module) -> list[ModuleType]:
    """The Python modules that define the model's classes, except PyTorch's own."""
    names = {parent.__module__ for module in model.modules() for parent in type(module).__mro__}
    found = [sys.modules.get(name) for name in sorted(names) if name.partition(".")[0] not in ("torch", "builtins")]
    return [home for home in found if home is not None]


def _bound_early(patches: list[Patch], homes: list[ModuleType]) -> list[Patch]:
    """The same functions imported under a module's own name: `from torch.nn.functional import softmax`."""
    originals: dict[int, Patch] = {}
    for patch in patches:
        function: Function = patch.get()
        originals[id(function)] = patch
    found = []
    for home in homes:
        for name, value in vars(home).items():
            patch_of = originals.get(id(value))
            if patch_of is not None and patch_of.owner is not home:
                found.append(Patch(home, name, patch_of.wrap))
    return found
