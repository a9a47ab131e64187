"""Hand-written attention, packed projections in several orders, and stand-ins for PEFT's LoRA layers, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import softmax as bound_early

HEADS, SIZE = 4, 8
D = HEADS * SIZE


def by_sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def by_all_of_sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, None, 0.0, True, scale=0.3, enable_gqa=True)


def by_named_sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(
        query=q, key=k, value=v, attn_mask=None, dropout_p=0.0, is_causal=True, scale=0.3
    )


def by_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    hidden = torch.ones(q.shape[-2], k.shape[-2]).tril() == 0
    return bound_early((q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -1e4), dim=-1) @ v


def by_method(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


MIXES: dict[str, Callable[..., Tensor]] = {
    "sdpa": by_sdpa, "all of sdpa": by_all_of_sdpa, "named sdpa": by_named_sdpa, "softmax": by_softmax,
    "method": by_method,
}  # fmt: skip


def in_thirds(y: Tensor) -> tuple[Tensor, ...]:
    """All of q, all of k, all of v: `qkv`, `in_proj`, `c_attn`."""
    return tuple(part.unflatten(-1, (HEADS, SIZE)).transpose(1, 2) for part in y.chunk(3, dim=-1))


def by_head(y: Tensor) -> tuple[Tensor, ...]:
    """q, k and v of head 0, then of head 1: `query_key_value` of GPT-NeoX."""
    return y.unflatten(-1, (HEADS, 3 * SIZE)).transpose(1, 2).chunk(3, dim=-1)


def backwards(y: Tensor) -> tuple[Tensor, ...]:
    """v first, then k, then q."""
    v, k, q = in_thirds(y)
    return q, k, v


def across(y: Tensor) -> tuple[Tensor, ...]:
    """Components first, heads last."""
    return tuple(part.unflatten(-1, (SIZE, HEADS)).permute(0, 3, 1, 2) for part in y.chunk(3, dim=-1))


def prescaled(y: Tensor) -> tuple[Tensor, ...]:
    q, k, v = in_thirds(y)
    return q * 0.3, k, v


def rotated(y: Tensor) -> tuple[Tensor, ...]:
    q, k, v = in_thirds(y)
    angle = torch.arange(q.shape[2], dtype=q.dtype)[:, None] / 10 ** torch.arange(SIZE // 2, dtype=q.dtype)

    def turn(x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)

    return turn(q), turn(k), v


SPLITS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "thirds": in_thirds, "by head": by_head, "backwards": backwards, "across": across, "prescaled": prescaled,
    "rotated": rotated,
}  # fmt: skip


class Packed(nn.Module):
    """One packed projection under a name of its own."""

    def __init__(self, split: Callable[[Tensor], tuple[Tensor, ...]], mix: Callable[..., Tensor] = by_sdpa) -> None:
        super().__init__()
        self.split, self.mix = split, mix
        self.everything, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.everything(x))
        return self.out(self.mix(q, k, v).transpose(1, 2).flatten(-2))


class Shared(nn.Module):
    """Grouped queries, the key heads repeated by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(D, D), nn.Linear(D, D // 2), nn.Linear(D, D // 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (-1, SIZE)).transpose(1, 2) for f in (self.a, self.b, self.c))
        k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
        return by_sdpa(q, k, v).transpose(1, 2).flatten(-2)


class Normed(nn.Module):
    """q and k are normalised between projection and product."""

    def __init__(self) -> None:
        super().__init__()
        self.everything = nn.Linear(D, 3 * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = in_thirds(self.everything(x))
        q, k = (functional.normalize(y, dim=-1) * 3.0 for y in (q, k))
        return by_sdpa(q, k, v).transpose(1, 2).flatten(-2)


class Lora(nn.Module):
    """The attributes and the arithmetic of PEFT's LoRA layer."""

    def __init__(self, base: nn.Module, rank: int = 2) -> None:
        super().__init__()
        weight: Any = base.weight
        out, inside = weight.shape if isinstance(base, nn.Linear) else weight.shape[::-1]
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(int(inside), rank, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, int(out), bias=False)})
        self.scaling = {"default": 2.0}
        self.in_features, self.out_features = int(inside), int(out)

    @property
    def weight(self) -> Any:
        return self.base_layer.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x)) * self.scaling["default"]


def wrapped(model: nn.Module, *names: str) -> nn.Module:
    """Put LoRA around every submodule with one of these names, as PEFT does."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in names and not isinstance(module, Lora):
                setattr(module, name, Lora(child).to(next(child.parameters()).dtype))
    return model


def tokens() -> Tensor:
    return torch.randn(3, 7, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def made(module: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(module()).double()
