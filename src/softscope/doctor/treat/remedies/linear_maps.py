"""Linear maps as rows, one for each output component: plain, transposed as in GPT-2, or wrapped by LoRA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

# Modules that compute W·x + b from the weight they show. Any other subclass may compute something else from it.
_PLAIN = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)


class LinearMap(NamedTuple):
    """Views into its parameters; the first axis of each is the output component."""

    weight: Tensor
    bias: Tensor | None = None
    adapters: tuple[Tensor, ...] = ()  # LoRA's B, which is added to the weight after a product with A
    wrapped: bool = False  # the weight is a frozen base with adapters beside it


class HeadRows(NamedTuple):
    """The rows that give one head's q or k: a factor on all of them is a factor on that."""

    weight: Tensor
    bias: Tensor | None = None
    adapters: tuple[Tensor, ...] = ()
    extra: Tensor | None = None  # a learned key beside those of the tokens
    wrapped: bool = False

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of them."""
        return tuple(x for x in (self.weight, self.bias, *self.adapters, self.extra) if x is not None)


def linear_map(module: Any) -> LinearMap | None:
    """The module as rows; None if it is something else, and `why_not` says why."""
    if type(module) in _PLAIN and not hasattr(module, "parametrizations") and module.weight.is_floating_point():
        return LinearMap(module.weight, module.bias)
    if type(module).__name__ == "Conv1D" and getattr(module, "weight", None) is not None:
        return LinearMap(module.weight.T, module.bias)
    if not _wrapper(module) or _entangled(module):
        return None
    inner = linear_map(module.base_layer)
    if inner is None:
        return None
    adapters = [x for b in module.lora_B.values() for x in (b.weight, b.bias) if x is not None]
    return LinearMap(inner.weight, inner.bias, tuple(adapters), wrapped=True)


def why_not(module: Any) -> str:
    """Why a module is no linear map whose rows can be changed; '' if it does not even look like one."""
    if hasattr(module, "parametrizations"):
        return "its weights are computed from other parameters"
    if _wrapper(module):
        return _entangled(module) or why_not(module.base_layer) or "its adapter wraps no linear map"
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor) and not weight.is_floating_point():
        return f"its weights are {weight.dtype}, which cannot be scaled"
    if isinstance(weight, Tensor) and weight.ndim == 2:
        return f"{type(module).__name__} may compute something else from the weight it shows"
    return ""


def looks_linear(module: Any) -> bool:
    """Whether this is meant as a linear map, treatable or not."""
    return _wrapper(module) or (isinstance(getattr(module, "weight", None), Tensor) and module.weight.ndim == 2)


def cut(found: LinearMap, start: int, size: int, step: int = 1) -> HeadRows:
    """The rows start, start + step, …, `size` of them."""
    rows = slice(start, start + size * step, step)
    bias = None if found.bias is None else found.bias[rows]
    return HeadRows(found.weight[rows], bias, tuple(a[rows] for a in found.adapters), wrapped=found.wrapped)


def _wrapper(module: Any) -> bool:
    """PEFT's LoRA layers, by their attributes: its package need not be installed."""
    return (
        isinstance(module, nn.Module)
        and hasattr(module, "base_layer")
        and isinstance(getattr(module, "lora_B", None), Mapping | nn.ModuleDict)
    )


def _entangled(module: Any) -> str:
    """What of a LoRA variant keeps its output from being linear in base and B."""
    if len(getattr(module, "lora_magnitude_vector", None) or ()):
        return "its adapter (DoRA) normalises the weights"
    return "its adapter is a variant of LoRA" if getattr(module, "lora_variant", None) else ""
