"""The hooks around the model's forward passes: the only place where the probe touches the model.

Between sampled steps nothing else is attached. During a sampled pass, `patches` observes the calls.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

Inputs = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # the module that is called, and its arguments


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


class _Uncompiled:
    """Disables compilation while anybody wants it so: passes of two probes on one model end in the order they began."""

    def __init__(self) -> None:
        self._wanted, self._lock = 0, threading.Lock()
        self._stance: Any = None

    def begin(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._stance = torch.compiler.set_stance("force_eager")

    def end(self) -> None:
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0:
                self._stance.__exit__(None, None, None)


_uncompiled = _Uncompiled()


class ForwardHooks:
    """Calls `opened(part, inputs)` before and `closed(output)` after each pass of the model, even one that fails.

    A model may be called in parts, as Lightning's modules are: `training_step` calls its submodules. Then the outermost
    call of a submodule counts, and `part` tells whether it belongs to a pass that other submodules have begun.
    """

    def __init__(self, model: nn.Module, opened: Callable[[bool, Inputs], None], closed: Callable[[Any], None]) -> None:
        self._model, self._opened, self._closed = model, opened, closed
        self._undo = contextlib.ExitStack()
        self._eager = False
        self.whole = False  # the model itself has been called, and not only parts of it
        self._depth = 0
        self._called: set[int] = set()  # submodules called in this pass
        self._own: set[int] = set()

    def attach(self) -> None:
        """Start calling `opened` and `closed`."""
        modules = [self._model, *_parts(self._model)]
        self._own = {id(module) for module in modules}
        for module in modules:
            self._attach(module)

    def _attach(self, module: nn.Module) -> None:
        compiled = getattr(module, "_compiled_call_impl", None)
        if compiled is not None:  # `model.compile()`: a hook would be compiled along with the model
            self._around(module, compiled)
            return
        before, after = register_module_forward_pre_hook, register_module_forward_hook
        if isinstance(module, nn.TransformerEncoderLayer):  # a hook on the layer itself would disable its fast path
            before_hook: Any = lambda its, args: self._before(its, args) if its is module else None  # noqa: E731
            after_hook: Any = lambda its, _, output: self._after(its, output) if its is module else None  # noqa: E731
        else:
            before = functools.partial(module.register_forward_pre_hook, with_kwargs=True)
            after = module.register_forward_hook
            before_hook = _Hook(self._before)
            after_hook = _Hook(lambda its, _, output: self._after(its, output))
        for handle in (before(before_hook), after(after_hook, always_call=True)):
            self._undo.callback(handle.remove)

    def detach(self) -> None:
        """Stop calling them."""
        self._with_compiler()
        self._undo.close()

    def without_compiler(self) -> None:
        """Disable compilation until the pass ends: compiled code makes no calls that we could observe.

        A compiled function would also find our wrappers in place of torch's functions, and be compiled again.
        """
        if "torch._dynamo" in sys.modules and not self._eager:
            self._eager = True
            _uncompiled.begin()

    def _with_compiler(self) -> None:
        if self._eager:
            self._eager = False
            _uncompiled.end()

    def _around(self, module: nn.Module, compiled: Callable[..., Any]) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._before(module, args, kwargs)
            output = None
            try:
                output = compiled(*args, **kwargs)
            finally:
                self._after(module, output)
            return output

        module._compiled_call_impl = call
        self._undo.callback(setattr, module, "_compiled_call_impl", compiled)

    def _before(self, module: nn.Module, args: tuple[Any, ...] = (), named: dict[str, Any] | None = None) -> None:
        if id(module) not in self._own or torch.compiler.is_compiling():
            return
        self._depth += 1
        self.whole |= module is self._model
        if self._depth > 1:
            return
        part = module is not self._model and bool(self._called) and id(module) not in self._called
        self._called = {*self._called, id(module)} if part else {id(module)} - {id(self._model)}
        self._opened(part, (module, args, named or {}))

    def _after(self, module: nn.Module, output: Any) -> None:
        if id(module) not in self._own or torch.compiler.is_compiling():
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._with_compiler()
            self._closed(output)


def _parts(model: nn.Module) -> list[nn.Module]:
    """The submodules that are called directly if the model itself is not; [] if it is."""
    if (
        not hasattr(model, "training_step")
        and inspect.getattr_static(type(model), "forward", None) is not nn.Module.forward
    ):
        return []
    found: list[nn.Module] = []
    for child in model.children():
        found += _parts(child) if isinstance(child, nn.ModuleList | nn.ModuleDict) else [child]
    return list({id(module): module for module in found}.values())
