"""Where a head's q and k are computed, in our own models and in transformers': the handle for changing one head.

It knows four classes by name and reads no attention call, so it shares nothing with what the doctor uses to see a head.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

Place = tuple[str, int]  # path of the attention module, which is the doctor's name of the site, and head


@dataclasses.dataclass(frozen=True, eq=False)
class Projection:
    """The part of a linear map that computes q, or k, of one head.

    Attributes:
        map: The linear map.
        start: Its first output that belongs to the head.
        size: How many outputs belong to it.
        initial: The standard deviation that fresh weights have.
        transposed: Whether the weights are (inputs, outputs), as in GPT-2.
    """

    map: Any
    start: int
    size: int
    initial: float
    transposed: bool = False

    @property
    def outputs(self) -> slice:
        """The head's outputs."""
        return slice(self.start, self.start + self.size)

    @property
    def weight(self) -> Tensor:
        """A view of the head's weights, (size, inputs)."""
        weight: Tensor = self.map.weight.detach()
        return weight[:, self.outputs].T if self.transposed else weight[self.outputs]

    @property
    def bias(self) -> Tensor | None:
        """A view of the head's biases, (size,), if it has any."""
        bias = self.map.bias
        return None if bias is None else bias.detach()[self.outputs]

    def multiply(self, factor: float) -> None:
        """Multiply what it computes, by its weights."""
        self.weight.mul_(factor)
        if self.bias is not None:
            self.bias.mul_(factor)

    def draw(self, generator: torch.Generator) -> None:
        """Draw the weights anew."""
        self.weight.normal_(std=self.initial, generator=generator)
        if self.bias is not None:
            self.bias.zero_()

    @contextlib.contextmanager
    def multiplied(self, factor: float) -> Iterator[None]:
        """Multiply what it computes for a while, without touching the weights."""

        def change(module: nn.Module, given: Any, out: Tensor) -> Tensor:
            del module, given
            out = out.clone()
            out[..., self.outputs] *= factor
            return out

        hook = self.map.register_forward_hook(change)
        try:
            yield
        finally:
            hook.remove()

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Give the weights back at the end."""
        weight, bias = self.weight.clone(), None if self.bias is None else self.bias.clone()
        try:
            yield
        finally:
            self.weight.copy_(weight)
            if bias is not None and self.bias is not None:
                self.bias.copy_(bias)


@dataclasses.dataclass(frozen=True, eq=False)
class HeadMaps:
    """What computes q and k of one head; `alone` if no other head reads the same k."""

    q: Projection
    k: Projection
    alone: bool = True

    def draw(self, generator: torch.Generator) -> None:
        """Re-initialise the head: q, and k where it belongs to no other head."""
        self.q.draw(generator)
        if self.alone:
            self.k.draw(generator)


def heads(model: nn.Module) -> dict[Place, HeadMaps]:
    """Every head of a model.

    >>> from softscope import tasks
    >>> list(heads(tasks.RecallModel(d=8, vocabulary=4, heads=2)))
    [('attention', 0), ('attention', 1)]
    """
    found: dict[Place, HeadMaps] = {}
    for path, module in model.named_modules():
        for head, maps in enumerate(_of(module)):
            found[path, head] = maps
    return found


def _of(module: Any) -> list[HeadMaps]:
    match type(module).__name__:
        case "Attention" if hasattr(module, "w_q"):
            initial = 1 / math.sqrt(module.w_q.in_features)
            return _cut(module.w_q, module.w_k, module.heads, module.heads, initial)
        case "LlamaAttention":
            many, size = module.config.num_attention_heads, module.head_dim
            return _cut(module.q_proj, module.k_proj, many, module.k_proj.out_features // size, _initial(module))
        case "BertSelfAttention" | "AlbertAttention":
            many = module.num_attention_heads
            return _cut(module.query, module.key, many, many, _initial(module))
        case "GPT2Attention":
            size, initial = module.head_dim, _initial(module)

            def part(start: int) -> Projection:
                return Projection(module.c_attn, start, size, initial, transposed=True)

            return [HeadMaps(part(j * size), part(module.embed_dim + j * size)) for j in range(module.num_heads)]
    return []


def _initial(module: Any) -> float:
    return float(module.config.initializer_range)


def _cut(q: nn.Linear, k: nn.Linear, heads: int, kv_heads: int, initial: float) -> list[HeadMaps]:
    size, group = q.out_features // heads, heads // kv_heads
    return [
        HeadMaps(Projection(q, j * size, size, initial), Projection(k, j // group * size, size, initial), group == 1)
        for j in range(heads)
    ]
