"""Small models that compute attention in every way the probe knows, and one training step for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import softmax as bound_early
from torch.utils.checkpoint import checkpoint

import softscope as ss
import softscope.nn


class Projected(nn.Module):
    """Project tokens to heads, mix them with a function of q, k, v, and project back."""

    def __init__(self, mix: Callable[[Tensor, Tensor, Tensor], Tensor], d: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.mix, self.heads = mix, heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        return self.out(self.mix(q, k, v).transpose(1, 2).flatten(-2))


class Stack(nn.Module):
    """Two layers with dropout in between, so the random state matters."""

    def __init__(self, make: Callable[[], nn.Module], again: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make() for _ in range(2))
        self.dropout, self.again = nn.Dropout(0.1), again

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            called = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
            x = x + self.dropout(called)
        return x


class SelfMultihead(nn.Module):
    def __init__(self, module: nn.Module, **options: Any) -> None:
        super().__init__()
        self.attention, self.options = module, options

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, **self.options)[0]


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True, scale=0.5)


def by_function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v


def by_method(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def by_early_name(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.dropout(bound_early(q @ k.transpose(-1, -2), dim=-1), 0.2) @ v


def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ss.attention(q, k, v, causal=True, softcap=5.0, sink=0.0)


def sparse(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ss.attention(q, k, v, alpha=1.5, window=(20, 0))


def multihead(**options: Any) -> Callable[[], nn.Module]:
    return lambda: SelfMultihead(nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True), **options)


def our_multihead(**options: Any) -> Callable[[], nn.Module]:
    return lambda: SelfMultihead(softscope.nn.MultiheadAttention(16, 2, batch_first=True, sink=True), **options)


# name: (how to make a layer, kind, what follows "layers.0" in the site's name)
KINDS: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "fused": (lambda: Projected(fused), "sdpa", ""),
    "grouped": (lambda: Projected(grouped), "sdpa", ""),
    "function": (lambda: Projected(by_function), "softmax", ""),
    "method": (lambda: Projected(by_method), "softmax", ""),
    "early name": (lambda: Projected(by_early_name), "softmax", ""),
    "ours": (lambda: Projected(ours), "softscope", ""),
    "sparse": (lambda: Projected(sparse), "softscope", ""),
    "multihead": (multihead(need_weights=False), "multihead", ".attention"),
    "multihead with weights": (multihead(need_weights=True), "multihead", ".attention"),
    "our multihead": (our_multihead(need_weights=False), "softscope", ".attention"),
    "our multihead with weights": (our_multihead(need_weights=True), "softscope", ".attention"),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
        "multihead",
        ".self_attn",
    ),
}


def stack(kind: str, *, again: bool = False) -> Stack:
    torch.manual_seed(0)
    return Stack(KINDS[kind][0], again)


def tokens(n: int = 48) -> Tensor:
    return torch.randn(3, n, 16, generator=torch.Generator().manual_seed(1))


def small_llama(implementation: str) -> Any:
    transformers = pytest_transformers()
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, attn_implementation=implementation,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config)


def pytest_transformers() -> Any:
    import pytest

    return pytest.importorskip("transformers", reason="pip install transformers to test Hugging Face's models")
