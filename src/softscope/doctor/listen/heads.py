"""How many heads a module says it has: by a hint given to the probe, or by an attribute of the module."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Mapping
from typing import Any

from torch import nn

from softscope.doctor.listen import module_paths

_NAMES = ("num_heads", "n_heads", "num_attention_heads", "n_head", "nhead", "nheads", "heads", "n_attn_heads")


class Hint:
    """The `heads` of a probe: one number for all modules, or numbers by path, where `*` stands for anything."""

    def __init__(self, model: nn.Module, heads: int | Mapping[str, int]) -> None:
        self._paths = module_paths.paths(model)
        self._heads = heads
        for pattern in heads if isinstance(heads, Mapping) else ():
            if not any(fnmatch.fnmatchcase(path, pattern) for path in self._paths.values()):
                raise ValueError(
                    f"heads must name modules of the model, but none is called {pattern!r}; pass a path as in "
                    "model.named_modules(), where * stands for anything"
                )

    def at(self, module: Any) -> int | None:
        """The number of heads at this module, if it was given."""
        path = self._paths.get(id(module))
        if path is None:
            return None
        if isinstance(self._heads, int):
            return self._heads
        return next((n for pattern, n in self._heads.items() if fnmatch.fnmatchcase(path, pattern)), None)


# By model, because a trial listens to the model too, and must count heads as its probe did.
_hints: weakref.WeakKeyDictionary[nn.Module, Hint] = weakref.WeakKeyDictionary()


def set_hint(model: nn.Module, heads: int | Mapping[str, int] | None) -> None:
    """Use this hint for the model from now on; None removes it."""
    if heads is None:
        _hints.pop(model, None)
    else:
        _hints[model] = Hint(model, heads)


def hinted(module: Any) -> int | None:
    """The number of heads that was given for this module."""
    for hint in _hints.values():
        found = hint.at(module)
        if found is not None:
            return found
    return None


def said_by(module: Any) -> int | None:
    """The number of heads that the module's own attribute gives."""
    for name in _NAMES:
        value = getattr(module, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
