"""A model built by the user's code: `module:function` returns the model, a batch, and optional extras."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from softscope._users_code import Raised, whatever_it_raises
from softscope.cli.problems import REASON, UsageError, shown

if TYPE_CHECKING:
    from softscope.doctor.examine import Given

NAMES = ("model", "batch", "loss", "optimizer")


def given(word: str) -> Given:
    """Import the function, call it, and take what it returns."""
    from torch import nn

    from softscope.doctor.examine import Given, passes

    returned = _returned(word)
    if isinstance(returned, dict):
        unknown = [name for name in returned if name not in NAMES]
        if unknown:
            raise UsageError("checkup.function.returned", function=shown(word), came=shown(f"a key {unknown[0]!r}"))
        found = dict(returned)
    else:
        found = dict(zip(NAMES, returned, strict=False)) if isinstance(returned, tuple) else {}
    model, batch, loss = found.get("model"), found.get("batch"), found.get("loss")
    fits = isinstance(model, nn.Module) and batch is not None and (loss is None or callable(loss))
    if not fits or (isinstance(returned, tuple) and len(returned) > len(NAMES)):
        raise UsageError("checkup.function.returned", function=shown(word), came=shown(_told(returned)))
    assert isinstance(model, nn.Module)
    if batch == []:
        raise UsageError("checkup.batch.none", function=shown(word))
    batches = batch if isinstance(batch, list) else passes(batch)
    return Given(model, batches, loss, found.get("optimizer"))


def _returned(word: str) -> Any:
    module, _, name = word.partition(":")
    here = str(pathlib.Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with whatever_it_raises():
            function = getattr(importlib.import_module(module), name, None)
    except Raised as raised:
        if isinstance(raised.error, ModuleNotFoundError):
            raise UsageError(
                "checkup.function.module", module=shown(module), reason=shown(raised.error, REASON)
            ) from None
        raise _failed(word, raised) from None
    if not callable(function):
        raise UsageError("checkup.function.absent", module=shown(module), name=shown(name))
    try:
        with whatever_it_raises():
            return function()
    except Raised as raised:
        raise _failed(word, raised) from None


def _failed(word: str, raised: Raised) -> UsageError:
    return UsageError("checkup.function.failed", function=shown(word), reason=shown(raised, REASON))


def _told(returned: Any) -> str:
    if isinstance(returned, tuple):
        return "(" + ", ".join(type(part).__name__ for part in returned) + ")"
    return ", ".join(returned) if isinstance(returned, dict) else type(returned).__name__
