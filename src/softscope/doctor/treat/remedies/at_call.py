"""Changes the arguments of a module's own attention calls, for modules that form their weights in code of their own.

While the module runs, calls of `scaled_dot_product_attention`, of softmax and of PyTorch's multi-head function go
through a torch function mode. The module's code stays as it is; a compiler sees a graph break there.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import warnings
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from softscope.doctor.listen import module_paths, patches
from softscope.doctor.listen.follow import traces
from softscope.doctor.treat.remedies.applied import NotSupportedError

if TYPE_CHECKING:
    from softscope.doctor.treat.remedies.applied import Applied

_EITHER, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
SDPA = inspect.Signature(
    [inspect.Parameter(x, _EITHER) for x in ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")]
    + [inspect.Parameter(x, _NAMED) for x in ("scale", "enable_gqa")]
)
MULTIHEAD = inspect.signature(functional.multi_head_attention_forward)
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Change(Protocol):
    """What to change in a call's arguments. A plain object, so that copying and pickling the model keeps it."""

    what: str

    def sdpa(self, module: nn.Module, bound: inspect.BoundArguments) -> None:
        """Change the arguments of `scaled_dot_product_attention` in place."""

    def multihead(self, module: nn.Module, bound: inspect.BoundArguments) -> None:
        """Change those of `multi_head_attention_forward` in place."""

    def softmax(self, module: nn.Module, x: Any, dim: Any) -> Any:
        """Other logits, or None if these are not attention's."""


class _Running(threading.local):
    def __init__(self) -> None:
        self.modes: list[_Mode] = []


_running = _Running()


def attach(done: Applied, module: nn.Module, change: Change) -> None:
    """Change every attention call that this module makes itself, until `done` is undone."""
    hooks = _Before(change, done.without_effect), _After()
    handles = module.register_forward_pre_hook(hooks[0]), module.register_forward_hook(hooks[1], always_call=True)
    for handle in handles:
        done.on_undo(handle.remove)


class _Before:
    """Opens the mode when the module is called."""

    def __init__(self, change: Change, without_effect: list[str]) -> None:
        self.change, self.without_effect = change, without_effect

    def __call__(self, module: nn.Module, _: Any) -> None:
        mode = _Mode(self, module)
        _running.modes.append(mode)
        patches.rewrites().append(mode.rewritten)
        mode.__enter__()  # type: ignore[no-untyped-call]

    def fail(self, module: nn.Module, why: str) -> None:
        """Say once that it has no effect."""
        if self.without_effect:
            return
        self.without_effect.append(why)
        text = (
            f"softscope: the {self.change.what} has no effect in {type(module).__name__}, because {why}; change your "
            f"own code instead"
        )
        with contextlib.suppress(RuntimeWarning):  # the run goes on even where warnings are errors
            warnings.warn(text, RuntimeWarning, stacklevel=3)


class _After:
    """Closes the mode, whether the module returned or raised."""

    def __call__(self, module: nn.Module, _: Any, __: Any) -> None:
        if not _running.modes or _running.modes[-1].module is not module:
            return  # another pre-hook raised before ours
        mode = _running.modes.pop()
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        patches.rewrites().remove(mode.rewritten)
        if not mode.met:
            mode.hook.fail(module, "no attention call that it can change was made")


class _Mode(TorchFunctionMode):
    def __init__(self, hook: _Before, module: nn.Module) -> None:
        super().__init__()
        self.hook, self.module = hook, module
        self.known = module_paths.paths(module)
        self.met = self.inside = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if patches.is_busy() or self.inside:
            return func(*args, **kwargs)
        args, kwargs = self.rewritten(func, args, kwargs)
        if getattr(func, "__name__", "") != "multi_head_attention_forward":
            return func(*args, **kwargs)
        self.inside = True  # its own softmax must not be changed again
        try:
            return func(*args, **kwargs)
        finally:
            self.inside = False

    def rewritten(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The changed arguments; the same ones if this is no attention of this module."""
        rewrite = {
            "scaled_dot_product_attention": self._sdpa,
            "softmax": self._softmax,
            "multi_head_attention_forward": self._multihead,
        }.get(getattr(function, "__name__", ""))
        if rewrite is None or self.inside:
            return args, kwargs
        place = module_paths.innermost(self.known)
        if place is None or place[1] is not self.module:
            return args, kwargs
        try:
            with patches.busy(), traces.unknown():  # read or not, a pass must change the same heads
                found = rewrite(args, kwargs)
        except Exception as error:  # never into the model
            known = isinstance(error, NotSupportedError)
            self.hook.fail(self.module, str(error) if known else f"{type(error).__name__}: {error}")
            return args, kwargs
        self.met = self.met or found is not None
        return (args, kwargs) if found is None else found

    def _sdpa(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        bound = SDPA.bind_partial(*args, **kwargs)
        self.hook.change.sdpa(self.module, bound)
        return bound.args, bound.kwargs

    def _multihead(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        bound = MULTIHEAD.bind(*args, **kwargs)
        self.hook.change.multihead(self.module, bound)
        return bound.args, bound.kwargs

    def _softmax(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | None:
        x = args[0] if args else kwargs["input"]
        dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
        new = self.hook.change.softmax(self.module, x, dim)
        if new is None:
            return None
        return ((new, *args[1:]), kwargs) if args else (args, {**kwargs, "input": new})
