"""The hooks around the model's forward passes: the only place where the probe touches the model.

Between sampled steps nothing else is attached. During a sampled pass, `patches` observes the calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


class _Hook:
    """A hook that is dropped when its model is copied or saved.

    A standard-library callable that accepts anything and does nothing takes its place, so a saved model loads without
    softscope.
    """

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *given: Any) -> None:
        self._call(*given)

    def __deepcopy__(self, memo: Any) -> Callable[..., None]:
        return contextlib.nullcontext().__exit__

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


class ForwardHooks:
    """Calls `opened()` before and `closed(output)` after each forward pass of the model, even one that fails."""

    def __init__(self, model: nn.Module, opened: Callable[[], None], closed: Callable[[Any], None]) -> None:
        self._model, self._opened, self._closed = model, opened, closed
        self._undo = contextlib.ExitStack()
        self._stance: Any = None
        self._depth = 0

    def attach(self) -> None:
        """Start calling `opened` and `closed`."""
        model = self._model
        compiled = getattr(model, "_compiled_call_impl", None)
        if compiled is not None:  # `model.compile()`: a hook would be compiled along with the model
            self._around(compiled)
        elif isinstance(model, nn.TransformerEncoderLayer):  # a hook on the layer itself would disable its fast path
            for handle in (
                register_module_forward_pre_hook(lambda module, _: self._before(module)),
                register_module_forward_hook(lambda module, _, output: self._after(module, output), always_call=True),
            ):
                self._undo.callback(handle.remove)
        else:
            for handle in (
                model.register_forward_pre_hook(_Hook(lambda module, _: self._before(module))),
                model.register_forward_hook(
                    _Hook(lambda module, _, output: self._after(module, output)), always_call=True
                ),
            ):
                self._undo.callback(handle.remove)

    def detach(self) -> None:
        """Stop calling them."""
        self._with_compiler()
        self._undo.close()

    def without_compiler(self) -> None:
        """Disable compilation until the pass ends: compiled code makes no calls that we could observe."""
        modules = self._model.modules()
        if any(m._compiled_call_impl is not None or hasattr(m, "_orig_mod") for m in modules):
            self._stance = torch.compiler.set_stance("force_eager")

    def _with_compiler(self) -> None:
        if self._stance is not None:
            stance, self._stance = self._stance, None
            stance.__exit__(None, None, None)

    def _around(self, compiled: Callable[..., Any]) -> None:
        model = self._model

        def call(*args: Any, **kwargs: Any) -> Any:
            self._before(model)
            output = None
            try:
                output = compiled(*args, **kwargs)
            finally:
                self._after(model, output)
            return output

        model._compiled_call_impl = call
        self._undo.callback(setattr, model, "_compiled_call_impl", compiled)

    def _before(self, module: nn.Module) -> None:
        if module is not self._model or torch.compiler.is_compiling():
            return
        self._depth += 1
        if self._depth == 1:
            self._opened()

    def _after(self, module: nn.Module, output: Any) -> None:
        if module is not self._model or torch.compiler.is_compiling():
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._with_compiler()
            self._closed(output)
