"""A temperature at the attention call itself: divides q, or the logits, of some heads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope.doctor.listen import patches
from softscope.doctor.listen.functions import explicit_softmax, sdpa
from softscope.doctor.treat.remedies import at_call

if TYPE_CHECKING:
    import inspect
    from collections.abc import Mapping

    from softscope.doctor.treat.remedies.applied import Applied

NAME = "softscope_call_temperature"


def attach(done: Applied, module: nn.Module, wanted: Mapping[int, float]) -> None:
    """Divide the logits of these heads in every attention call that this module makes itself."""
    name = next(free for i in range(10_000) if not hasattr(module, free := f"{NAME}{i or ''}"))
    like = next(module.parameters(), None)
    kind: dict[str, Any] = (
        {"dtype": torch.float32} if like is None else {"dtype": _wide(like.dtype), "device": like.device}
    )
    logarithms = torch.tensor([math.log(value) for value in wanted.values()], **kind)
    module.register_parameter(name, nn.Parameter(logarithms, requires_grad=False))

    def back() -> None:
        if name in module._parameters:
            delattr(module, name)

    done.on_undo(back)
    at_call.attach(done, module, _Temperature(name, tuple(wanted)))


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32) if dtype.is_floating_point else torch.float32


class _Temperature:
    what = "temperature"

    def __init__(self, name: str, heads: tuple[int, ...]) -> None:
        self.name, self.heads = name, heads

    def sdpa(self, module: nn.Module, bound: inspect.BoundArguments) -> None:
        query = bound.arguments["query"]
        # Only the axes matter, and those of the output are those of the query.
        seen = sdpa.describe(query, **bound.arguments)
        bound.arguments["query"] = query * self._factors(module, seen.gradient, query)

    def softmax(self, module: nn.Module, x: Any, dim: Any) -> Any:
        four = explicit_softmax.laid_out(x, dim)
        if four is None:
            return None
        factors = self._factors(module, four, x)
        around = patches.context()
        if isinstance(around.get("q"), Tensor):  # what the probe will read beside the logits
            around["q"] = around["q"].clone()
            for head, value in self._values(module, around["q"]):
                around["q"][:, head] *= value
        # A hidden key stays hidden: −10000 divided by a high temperature would come into sight.
        return torch.where(logit_is_hidden(x), x, x * factors)

    def multihead(self, module: nn.Module, bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        size = given["embed_dim_to_check"] // given["num_heads"]
        for name in ("in_proj_weight", "q_proj_weight", "in_proj_bias"):
            weight = given.get(name)
            if weight is None:
                continue
            factor = torch.ones(weight.shape[0], *(1,) * (weight.ndim - 1), dtype=weight.dtype, device=weight.device)
            for head, value in self._values(module, weight):
                factor[head * size : (head + 1) * size] = value
            given[name] = weight * factor

    def _factors(self, module: nn.Module, axes: Any, like: Tensor) -> Tensor:
        """1 everywhere, and 1/T for the heads; `axes` turns a tensor of this shape into (B, heads, n, …)."""
        factor = torch.ones(like.shape, dtype=like.dtype, device=like.device)
        view = axes(factor)
        if view.untyped_storage().data_ptr() != factor.untyped_storage().data_ptr():
            raise ValueError("its tensors are not laid out by head")
        for head, value in self._values(module, like):
            view[:, head] = value
        return factor

    def _values(self, module: nn.Module, like: Tensor) -> list[tuple[int, Tensor]]:
        logarithms = getattr(module, self.name)
        values = torch.exp(-logarithms).to(dtype=like.dtype, device=like.device)
        return list(zip(self.heads, values, strict=True))
