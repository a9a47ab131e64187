"""sparsemax and α-entmax of rows of tensors, differentiable in x, temperature and alpha.

One custom operator finds the weights; its derivatives are closed forms of the weights:

    ∂p/∂d = J            ∂p/∂α = −J·g,    g = ∂/∂β [(p^β − 1)/β] = (log p)²·ψ(β·log p),    β = α − 1
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from softscope._backends.torch import steep_entmax
from softscope._backends.torch.dtypes import row_dtype, widest
from softscope._backends.torch.engine_memory import differentiated, recorded
from softscope._backends.torch.tensor_jacobian import product
from softscope._backends.torch.tensor_softmax import distances, hidden_to_minus_inf, softmax

_STEPS = 200


def entmax(x: Tensor, alpha: Any, temperature: Any, visible: Tensor | None) -> Tensor:
    """Compute the sparse weights of the rows, in x's dtype."""
    if isinstance(alpha, float):
        if alpha == 1.0:
            return softmax(x, temperature, visible)
        alpha = x.new_full((*x.shape[:-1], 1), alpha, dtype=widest(x))
    if x.shape[-1] == 0:
        return x.clone()
    d = distances(hidden_to_minus_inf(x.to(row_dtype(x)), visible), temperature)
    if visible is not None:  # a row that sees nothing would have NaN weights, and give alpha a NaN gradient
        d = d.masked_fill(~visible.any(dim=-1, keepdim=True), 0.0)
    p = _compiled(d, alpha) if recorded() else _Weights.apply(d, alpha)  # type: ignore[no-untyped-call]
    return (p if visible is None else p.masked_fill(~visible, 0.0)).to(x.dtype)


def log_weights(d: Tensor, beta: Tensor, top: Tensor) -> Tensor:
    """Compute log p = top + log1p(β·d·e^(−β·top))/β, and top + d as β → 0; see `reference.entmax`."""
    z = torch.where(d == -math.inf, d, d * torch.exp(-beta * top))
    linear = beta == 0.0
    inside = torch.where(z == -math.inf, -1.0, torch.clamp(beta * z, min=-1.0))
    return top + torch.where(linear, z, torch.log1p(inside) / beta.masked_fill(linear, 1.0))


def solve_top(d: Tensor, beta: Tensor) -> Tensor:
    """Find the log of the largest weight by Newton steps inside a bracket; see `reference.entmax`."""
    low = -torch.log((d != -math.inf).sum(dim=-1, keepdim=True).clamp(min=1).to(d.dtype))
    high = torch.zeros_like(low)
    top = low
    done = torch.zeros_like(low, dtype=torch.bool)
    resolution = torch.finfo(d.dtype).eps / 2.0
    for _ in range(_STEPS):
        log_p = log_weights(d, beta, top)
        p = torch.exp(log_p)
        none = p == 0.0
        s = torch.exp((1.0 - beta) * log_p.masked_fill(none, 0.0)).masked_fill(none, 0.0)
        total = p.sum(dim=-1, keepdim=True)
        excess = torch.log(total)
        step = excess * total / (s.sum(dim=-1, keepdim=True) * torch.exp(beta * top))
        low, high = torch.where(excess <= 0.0, top, low), torch.where(excess >= 0.0, top, high)
        new = top - step
        # Stay strictly inside: Newton could swing between the bracket's edges for ever.
        small = step.abs() <= 8.0 * resolution
        new = torch.where((new > low) & (new < high) | small, new, 0.5 * (low + high))
        near = ~((new - top).abs() > 4.0 * resolution * top.abs().clamp(min=1.0))
        # A converged row stays fixed: its result must not depend on how many steps its neighbours take.
        top = torch.where(done, top, new.masked_fill(torch.isnan(excess), math.nan))
        done = done | near
        if bool(done.all()):
            break
    return top


@torch.library.custom_op("softscope::entmax", mutates_args=())
def _weights(d: Tensor, alpha: Tensor) -> Tensor:
    """Compute the weights of distances d ≤ 0; alpha keeps the axis. It is one operator, so compilers see no loop."""
    wide = d.to(widest(d))
    beta = (alpha.to(wide.dtype) - 1.0).expand(*d.shape[:-1], 1)
    steep = beta > 1.0
    some = bool(steep.any())
    if some and bool(steep.all()):
        p = steep_entmax.entmax(wide, beta)
    else:
        gentle = beta.clamp(max=1.0)
        p = torch.exp(log_weights(wide, gentle, solve_top(wide, gentle)))
        if some:
            p = torch.where(steep, steep_entmax.entmax(wide, beta.masked_fill(~steep, 2.0)), p)
    return (p / p.sum(dim=-1, keepdim=True)).to(d.dtype).contiguous()


@_weights.register_fake
def _(d: Tensor, alpha: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty_like(d, memory_format=torch.contiguous_format)


@_weights.register_vmap
def _(info: Any, in_dims: tuple[int | None, int | None], d: Tensor, alpha: Tensor) -> tuple[Tensor, int]:
    return _weights(*_batch_first(info, in_dims, d, alpha)), 0


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1], output)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
    alpha, p = ctx.saved_tensors
    flow = product(p, gradient, alpha)
    if not ctx.needs_input_grad[1]:
        return flow, None
    # g·(J·pull), as J is symmetric: for α > 2, J·g may overflow, but J·pull stays below 1. J maps constants to 0, so
    # g counts from its value at the largest weight, where near one-hot J·pull would be the least exact.
    gradient = gradient - gradient.gather(-1, p.detach().argmax(dim=-1, keepdim=True))
    pull = product(p, _alpha_pull(p, alpha.to(p.dtype) - 1.0), alpha)
    return flow, -(gradient * pull).sum(dim=-1, keepdim=True).to(alpha.dtype)


_weights.register_autograd(_backward, setup_context=_save)


def _compiled(d: Tensor, alpha: Tensor) -> Tensor:
    if differentiated():
        raise NotImplementedError(
            "sparsemax, entmax and attention with alpha other than 1 have no torch.func derivatives inside "
            "torch.compile(fullgraph=True); use fullgraph=False, or backward() instead of the transform"
        )
    return _weights(d, alpha)


class _Weights(torch.autograd.Function):
    """d, α → p, in eager mode: PyTorch's operators know only the backward derivative, and forward ones would be 0."""

    @staticmethod
    def forward(d: Tensor, alpha: Tensor) -> Tensor:
        return _weights(d, alpha)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1], output)
        ctx.save_for_forward(inputs[1], output)

    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx: Any, along_d: Tensor, along_alpha: Tensor) -> Tensor:
        # PyTorch switches forward derivatives off in here; a second one, of this one, would silently be 0.
        with forward_ad._set_fwd_grad_enabled(True):
            alpha, p = (forward_ad.unpack_dual(x).primal for x in ctx.saved_tensors)  # type: ignore[no-untyped-call]
            pull = _alpha_pull(p, alpha.to(p.dtype) - 1.0)
            return product(p, along_d - pull * along_alpha.to(p.dtype), alpha)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None], d: Tensor, alpha: Tensor) -> tuple[Tensor, int]:
        return _Weights.apply(*_batch_first(info, in_dims, d, alpha)), 0  # type: ignore[no-untyped-call]


def _batch_first(info: Any, in_dims: tuple[int | None, int | None], *tensors: Tensor) -> list[Tensor]:
    """Move vmap's axis to the front, or repeat a tensor that has none: more rows, and each stays on its own."""
    return [
        x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip(tensors, in_dims, strict=True)
    ]


def _alpha_pull(p: Tensor, beta: Tensor) -> Tensor:
    """Compute g = (log p)²·ψ(β·log p), ψ(y) = (y·e^y − e^y + 1)/y²; near 0, where that form cancels, use the series.

    Dividing the cancelled difference by (α−1)² leaves no correct digit at α = 1 + 1e-8. For α > 2, leave out the
    constant 1/β², which J maps to 0: small weights have a large J, and would lose their g = p^β·(…) beside it.
    """
    log_p = torch.log(p.masked_fill(p == 0.0, 1.0))
    y = beta * log_p
    near = y.abs() < 1.0
    far = y.masked_fill(near, -1.0)
    direct = (far * torch.exp(far) - torch.expm1(far)) / (far * far)
    small = y.masked_fill(~near, 0.0)
    series = torch.zeros_like(y)
    for k in reversed(range(18)):  # ψ(y) = Σ y^k·(k+1)/(k+2)!
        series = series * small + (k + 1) / math.factorial(k + 2)
    steep = beta > 1.0
    large = beta.masked_fill(~steep, 2.0)
    shifted = torch.exp(y.masked_fill(~steep, 0.0)) * (log_p - 1.0 / large) / large
    return torch.where(steep, shifted, log_p * log_p * torch.where(near, series, direct))
