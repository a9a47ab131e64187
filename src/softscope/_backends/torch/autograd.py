"""Autograd functions for the maps: the engine in the forward pass, closed-form derivatives in the backward pass.

    softmax, entmax  J(p)·g/T          log_softmax  (g − exp(y)·Σg)/T          logsumexp  g·p/T

A backward pass that is itself differentiated (create_graph), or that does not run in eager mode, uses tensor operations
instead. The kernels must agree with these operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softscope._backends.engine import kernels
from softscope._backends.torch import backward
from softscope._backends.torch.engine_memory import engine


def applied(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    """Apply an autograd function, without PyTorch's questions about transforms, which `eager` has asked."""
    return super(torch.autograd.Function, function).apply(*arguments)  # type: ignore[misc]


def keep(ctx: Any, temperature: Any, *tensors: Tensor) -> None:
    """Save what the backward pass needs; a temperature may be a number, which autograd cannot save."""
    if isinstance(temperature, Tensor):
        ctx.number = None
        ctx.save_for_backward(temperature, *tensors)
    else:
        ctx.number = temperature
        ctx.save_for_backward(*tensors)


def kept(ctx: Any) -> tuple[Any, ...]:
    """Return the saved temperature and tensors."""
    return ctx.saved_tensors if ctx.number is None else (ctx.number, *ctx.saved_tensors)


class Softmax(torch.autograd.Function):
    """x, T → p."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, temperature: Any) -> Tensor:
        p = engine("softmax", x, temperature)
        keep(ctx, temperature, p)
        return p

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        temperature, p = kept(ctx)
        return backward.weights(p, gradient, 1.0, temperature), None


class LogSoftmax(torch.autograd.Function):
    """x, T → log p."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, temperature: Any) -> Tensor:
        y = engine("log_softmax", x, temperature)
        keep(ctx, temperature, y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        temperature, y = kept(ctx)
        return backward.log_softmax(y, gradient, temperature), None


class LogSumExp(torch.autograd.Function):
    """x, T → log Σ exp(x/T)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, temperature: Any) -> Tensor:
        keep(ctx, temperature, x)
        return engine("logsumexp", x, temperature)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        temperature, x = kept(ctx)
        return backward.logsumexp(x, gradient, temperature), None


class Entmax(torch.autograd.Function):
    """x, α, T → p, with α and T constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Any, temperature: Any) -> Tensor:
        # For α > 2, p^(2−α) magnifies the rounding of p: keep the weights unrounded.
        p = engine("entmax", x.double() if kernels.steep(alpha) else x, temperature, alpha=alpha)
        ctx.alpha = alpha
        keep(ctx, temperature, p)
        return p if p.dtype is x.dtype else p.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        temperature, p = kept(ctx)
        if p.dtype is gradient.dtype:
            return backward.weights(p, gradient, ctx.alpha, temperature), None, None
        flow = backward.weights(p, gradient.to(p.dtype), ctx.alpha, temperature)
        return flow.to(gradient.dtype), None, None


DIFFERENTIABLE = {"softmax": Softmax, "log_softmax": LogSoftmax, "logsumexp": LogSumExp}
