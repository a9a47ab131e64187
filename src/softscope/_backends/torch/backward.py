"""The backward pass of the maps: the engine, or tensor operations where autograd or a compiler must see them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softscope._backends.engine import kernels
from softscope._backends.torch import tensor_softmax
from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.engine_memory import eager, engine, held, memory, per_row, threads, two_inputs
from softscope._backends.torch.tensor_jacobian import jacobian_product


def weights(p: Tensor, g: Tensor, alpha: Any, temperature: Any) -> Tensor:
    """Compute J·g/T for the weights of softmax (alpha 1) and entmax."""
    if unseen(p, g):
        if type(alpha) is float and alpha <= 2.0:
            quick = two_inputs("jacobian_product", p, g, temperature, alpha)
            if quick is not None:
                return quick
        out = torch.empty_like(p)
        if run("jacobian_product", (p, g), (alpha, temperature), out):
            return out
    return jacobian_product(p, g, alpha, temperature)


def log_softmax(y: Tensor, g: Tensor, temperature: Any) -> Tensor:
    """(g − exp(y)·Σg)/T."""
    if unseen(y, g):
        quick = two_inputs("log_softmax_backward", y, g, temperature)
        if quick is not None:
            return quick
        out = torch.empty_like(y)
        if run("log_softmax_backward", (y, g), (temperature,), out):
            return out
    wide = row_dtype(y)
    g = g.to(wide)
    return (log_softmax_slope(y.to(wide), g, g.sum(dim=-1, keepdim=True)) / like(temperature, wide)).to(y.dtype)


def log_softmax_slope(y: Tensor, g: Tensor, total: Tensor) -> Tensor:
    """Compute g − exp(y)·Σg, given Σg with the axis kept.

    Computed as (1 − exp(y))·g minus the other entries' share: if one weight is nearly 1, g − exp(y)·g would cancel.
    """
    return -torch.expm1(y) * g - torch.exp(y) * (total - g)


def logsumexp(x: Tensor, g: Tensor, temperature: Any) -> Tensor:
    """g·p/T."""
    if unseen(x, g):
        flow = g if type(temperature) is float and temperature == 1.0 else g / _of_rows(temperature)
        return engine("softmax", x, temperature).mul_(flow.unsqueeze(-1))
    wide = row_dtype(x)
    p = tensor_softmax.softmax(x.to(wide), temperature, None)
    return (p * g.to(wide).unsqueeze(-1) / like(temperature, wide)).to(x.dtype)


def unseen(*tensors: Tensor) -> bool:
    """Tell whether the operations may stay hidden: no second derivative is needed, and all memory is accessible."""
    return not torch.is_grad_enabled() and eager() and all(map(held, tensors))


def run(name: str, rows_of: tuple[Tensor, ...], numbers: tuple[Any, ...], out: Tensor) -> bool:
    """Let a backward kernel fill `out`; return False if the engine refuses."""
    kernel = getattr(kernels, name)
    return bool(kernel(*map(memory, rows_of), *map(per_row, numbers), memory(out), threads()))


def _of_rows(temperature: Any) -> Any:
    """Reshape a temperature (…, 1) to (…,)."""
    return temperature.squeeze(-1) if isinstance(temperature, Tensor) else temperature
