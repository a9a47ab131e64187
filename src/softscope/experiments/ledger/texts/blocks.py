"""The backward pass of one attention block: which weights and inputs the gradient still reaches."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import softscope as ss

if TYPE_CHECKING:
    import torch

N, D = 16, 64


@functools.cache
def gradient_norms(gain: float) -> dict[str, float]:
    """Gradient norms of W_Q, W_K, W_V and the input, with scores times `gain`/√d and loss Σ output·target.

    "input" is the plain block, "input, residual" adds the input to the output, and in "input, scores" the input
    reaches only q and k.
    """
    import torch

    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = normal(N, D)
    w = {name: (normal(D, D) / D**0.5).requires_grad_() for name in ("W_Q", "W_K", "W_V")}
    target = normal(N, D)

    def backward(scores_from: Any, values_from: Any, residual: Any = 0.0) -> None:
        q, k, v = scores_from @ w["W_Q"], scores_from @ w["W_K"], values_from @ w["W_V"]
        output = ss.attention(q[None], k[None], v[None], scale=gain / D**0.5)[0] + residual
        (output * target).sum().backward()

    def norm_at(tensor: Any) -> float:
        return 0.0 if tensor.grad is None else float(tensor.grad.norm())

    norms = {}
    for name in ("input", "input, residual", "input, scores"):
        seen = x.clone().requires_grad_()
        backward(seen, x if name == "input, scores" else seen, seen if "residual" in name else 0.0)
        norms[name] = norm_at(seen)
        if name == "input":
            norms |= {which: norm_at(tensor) for which, tensor in w.items()}
    return norms
