"""The functions that compute attention in other people's models, and what each says about a call.

One file for each way. `all_seams(model)` lists where they lie for this model.
"""

from __future__ import annotations

import sys
from types import ModuleType

from torch import nn

from softscope.doctor.attach import huggingface, multihead, ours, sdpa, softmax
from softscope.doctor.seams import Function, Seam

__all__ = ["all_seams"]


def all_seams(model: nn.Module) -> list[Seam]:
    """Every place where a call of this model's attention can be overheard."""
    homes = _homes(model)
    seams = [*sdpa.seams(), *softmax.seams(), *multihead.seams(), *ours.seams(), *huggingface.seams(homes)]
    return seams + _bound_early(seams, homes)


def _homes(model: nn.Module) -> list[ModuleType]:
    """The Python modules in which the classes of the model are written, PyTorch's left out."""
    names = {parent.__module__ for module in model.modules() for parent in type(module).__mro__}
    found = [sys.modules.get(name) for name in sorted(names) if name.partition(".")[0] not in ("torch", "builtins")]
    return [home for home in found if home is not None]


def _bound_early(seams: list[Seam], homes: list[ModuleType]) -> list[Seam]:
    """The same functions under names of their own: `from torch.nn.functional import softmax`."""
    originals: dict[int, Seam] = {}
    for seam in seams:
        function: Function = seam.get()
        originals[id(function)] = seam
    found = []
    for home in homes:
        for name, value in vars(home).items():
            seam_of = originals.get(id(value))
            if seam_of is not None and seam_of.owner is not home:
                found.append(Seam(home, name, seam_of.wrap))
    return found
