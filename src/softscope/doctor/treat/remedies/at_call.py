"""A temperature at the attention call itself, for modules that form their weights in code of their own.

While the module runs, calls of `scaled_dot_product_attention`, of softmax and of PyTorch's multi-head function go
through a torch function mode, which divides q (or the logits) of some heads. The module's code stays as it is; a
compiler sees a graph break there.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope.doctor.listen import module_paths, patches
from softscope.doctor.listen.follow import traces
from softscope.doctor.listen.functions import explicit_softmax, sdpa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softscope.doctor.treat.remedies.applied import Applied

NAME = "softscope_call_temperature"
_MULTIHEAD = inspect.signature(functional.multi_head_attention_forward)
_EITHER, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_SDPA = inspect.Signature(
    [inspect.Parameter(x, _EITHER) for x in ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")]
    + [inspect.Parameter(x, _NAMED) for x in ("scale", "enable_gqa")]
)


class _Running(threading.local):
    def __init__(self) -> None:
        self.modes: list[_Mode] = []


_running = _Running()


def attach(done: Applied, module: nn.Module, wanted: Mapping[int, float]) -> None:
    """Divide the logits of these heads in every attention call that this module makes itself."""
    name = next(free for i in range(10_000) if not hasattr(module, free := f"{NAME}{i or ''}"))
    like = next(module.parameters(), None)
    kind: dict[str, Any] = (
        {"dtype": torch.float32} if like is None else {"dtype": _wide(like.dtype), "device": like.device}
    )
    logarithms = torch.tensor([math.log(value) for value in wanted.values()], **kind)
    module.register_parameter(name, nn.Parameter(logarithms, requires_grad=False))
    hooks = _Before(name, tuple(wanted)), _After()
    handles = module.register_forward_pre_hook(hooks[0]), module.register_forward_hook(hooks[1], always_call=True)

    def back() -> None:
        for handle in handles:
            handle.remove()
        if name in module._parameters:
            delattr(module, name)

    done.on_undo(back)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32) if dtype.is_floating_point else torch.float32


class _Before:
    """Opens the mode when the module is called; a plain object, so that copying and pickling the model keeps it."""

    def __init__(self, name: str, heads: tuple[int, ...]) -> None:
        self.name, self.heads, self.warned = name, heads, False

    def __call__(self, module: nn.Module, _: Any) -> None:
        mode = _Mode(self, module)
        _running.modes.append(mode)
        patches.rewrites().append(mode.rewritten)
        mode.__enter__()  # type: ignore[no-untyped-call]


class _After:
    """Closes the mode, whether the module returned or raised."""

    def __call__(self, module: nn.Module, _: Any, __: Any) -> None:
        if not _running.modes or _running.modes[-1].module is not module:
            return  # another pre-hook raised before ours
        mode = _running.modes.pop()
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        patches.rewrites().remove(mode.rewritten)
        if not mode.met and not mode.hook.warned:
            mode.hook.warned = True
            _warn(module)


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
        self.inside = True  # its own softmax must not be divided again
        try:
            return func(*args, **kwargs)
        finally:
            self.inside = False

    def rewritten(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with q or the logits divided; unchanged if this is no attention of this module."""
        name = getattr(function, "__name__", "")
        rewrite = {
            "scaled_dot_product_attention": self._query,
            "softmax": self._logits,
            "multi_head_attention_forward": self._weights,
        }.get(name)
        if rewrite is None or self.inside:
            return args, kwargs
        place = module_paths.innermost(self.known)
        if place is None or place[1] is not self.module:
            return args, kwargs
        try:
            with patches.busy(), traces.unknown():  # read or not, a pass must change the same heads
                found = rewrite(args, kwargs)
        except Exception as error:  # never into the model
            if not self.hook.warned:
                self.hook.warned = True
                _warn(self.module, f"{type(error).__name__}: {error}")
            return args, kwargs
        self.met = self.met or found is not None
        return (args, kwargs) if found is None else found

    def _factors(self, axes: Any, like: Tensor) -> Tensor:
        """1 everywhere, and 1/T for the heads; `axes` turns a tensor of this shape into (B, heads, n, …)."""
        factor = torch.ones(like.shape, dtype=like.dtype, device=like.device)
        view = axes(factor)
        if view.untyped_storage().data_ptr() != factor.untyped_storage().data_ptr():
            raise ValueError("its tensors are not laid out by head")
        for head, value in self._values(like):
            view[:, head] = value
        return factor

    def _values(self, like: Tensor) -> list[tuple[int, Tensor]]:
        logarithms = getattr(self.module, self.hook.name)
        values = torch.exp(-logarithms).to(dtype=like.dtype, device=like.device)
        return list(zip(self.hook.heads, values, strict=True))

    def _query(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound = _SDPA.bind_partial(*args, **kwargs)
        query = bound.arguments["query"]
        # Only the axes matter, and those of the output are those of the query.
        seen = sdpa.describe(query, **bound.arguments)
        bound.arguments["query"] = query * self._factors(seen.gradient, query)
        return bound.args, bound.kwargs

    def _logits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        x = args[0] if args else kwargs["input"]
        dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
        four = explicit_softmax.laid_out(x, dim)
        if four is None:
            return None
        factors = self._factors(four, x)
        around = patches.context()
        if isinstance(around.get("q"), Tensor):  # what the probe will read beside the logits
            around["q"] = around["q"].clone()
            for head, value in self._values(around["q"]):
                around["q"][:, head] *= value
        # A hidden key stays hidden: −10000 divided by a high temperature would come into sight.
        new = torch.where(logit_is_hidden(x), x, x * factors)
        return ((new, *args[1:]), kwargs) if args else (args, {**kwargs, "input": new})

    def _weights(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound = _MULTIHEAD.bind(*args, **kwargs)
        given = bound.arguments
        size = given["embed_dim_to_check"] // given["num_heads"]
        for name in ("in_proj_weight", "q_proj_weight", "in_proj_bias"):
            weight = given.get(name)
            if weight is None:
                continue
            factor = torch.ones(weight.shape[0], *(1,) * (weight.ndim - 1), dtype=weight.dtype, device=weight.device)
            for head, value in self._values(weight):
                factor[head * size : (head + 1) * size] = value
            given[name] = weight * factor
        return bound.args, bound.kwargs


def _warn(module: nn.Module, why: str = "") -> None:
    text = (
        f"softscope: the temperature has no effect in {type(module).__name__}, because "
        f"{why or 'no attention call that it can change was made'}; divide its logits in your own code"
    )
    with contextlib.suppress(RuntimeWarning):  # the run goes on even where warnings are errors
        warnings.warn(text, RuntimeWarning, stacklevel=3)
