"""Cross-entropy of CPU tensors: one kernel forward and one backward; the gradient is the only (rows × classes) array.

A row's loss and its gradient, with m = max x, z = Σ exp((x − m)/T) and the target's weight p_t:

    (1−ε)·((m − x_t)/T + log z) + ε·((m − mean x)/T + log z)          g/T·(p − ε/n),  minus g/T·(1−ε) at the target
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.checks import LARGEST, plain_number
from softscope._backends.engine import kernels
from softscope._backends.torch import backward, losses
from softscope._backends.torch.autograd import applied
from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.engine_memory import DTYPES, eager, flows, held, reachable, rows_at, threads
from softscope._backends.torch.maps import offered, softmax


class Loss(NamedTuple):
    """What is a number, as the engine takes it."""

    ignored: int
    smoothing: float
    reduction: int


def plain_cross_entropy(
    x: Any, targets: Any, temperature: Any, smoothing: Any, ignored: Any, reduction: Any
) -> Tensor | None:
    """Take the short way for contiguous rows of classes; None if the full path is needed."""
    if not (eager() and held(x) and held(targets) and x.is_contiguous() and targets.is_contiguous()):
        return None
    if x.dtype not in DTYPES or targets.dtype is not torch.int64 or not x.numel() or targets.shape != x.shape[:-1]:
        return None
    t, epsilon, kind = plain_number(temperature), plain_number(smoothing), type(reduction) is str and reduction
    if not x.ndim or not kernels.offers(x.itemsize, t) or not 0.0 <= epsilon <= 1.0 or kind not in kernels.REDUCTIONS:
        return None
    if type(ignored) is not int or not -LARGEST <= ignored <= LARGEST:
        return None
    try:
        found = _losses(x, targets, t, None, Loss(ignored, epsilon, kernels.REDUCTIONS[reduction]))
    except NoClassError:
        return None  # the full path finds it, and the words for it
    return found if found.dtype is x.dtype else found.to(x.dtype)


def cross_entropy(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
    """Compute each row's loss in float64; see `losses.cross_entropy` for the definition. Every target is a class."""
    if not (offered(x, temperature) and reachable(targets)):
        return losses.cross_entropy(x, targets, temperature, label_smoothing)
    rows, t = None, temperature
    if isinstance(temperature, Tensor):
        rows, t = temperature.detach().double().expand((*x.shape[:-1], 1)).contiguous(), 1.0
    return _losses(x.contiguous(), targets.contiguous(), t, rows, Loss(-1, label_smoothing, 0))


class NoClassError(Exception):
    """A target is neither a class nor ignored."""


def _losses(x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: Loss) -> Tensor:
    if flows(x):
        return applied(_CrossEntropy, x, targets, temperature, temperatures, loss)
    return _forward(x, targets, temperature, temperatures, loss, None)


def _forward(
    x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: Loss, sums: Tensor | None
) -> Tensor:
    out = torch.empty((), dtype=x.dtype) if loss.reduction else torch.empty(targets.shape, dtype=torch.float64)
    if not _engine.cross_entropy_at(
        x.data_ptr(), targets.data_ptr(), rows_at(x), loss, temperature, _address(temperatures), out.data_ptr(),
        _address(sums), threads(),
    ):  # fmt: skip
        raise NoClassError
    return out


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


class _CrossEntropy(torch.autograd.Function):
    """x, targets, T of all rows, T of each row, the numbers → each row's loss, their sum or their mean."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: Loss
    ) -> Tensor:
        sums = torch.empty((targets.numel(), 2), dtype=torch.float64)  # each row's m and z − 1
        out = _forward(x, targets, temperature, temperatures, loss, sums)
        ctx.save_for_backward(x, targets, temperatures, sums)
        ctx.numbers = temperature, loss
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, targets, temperatures, sums = ctx.saved_tensors
        temperature, loss = ctx.numbers
        if not backward.unseen(x, gradient):
            slope = _visible_slope(x, targets, temperature if temperatures is None else temperatures, loss, gradient)
            return slope, None, None, None, None
        slope, g = torch.empty_like(x), gradient.contiguous()
        _engine.cross_entropy_backward_at(
            x.data_ptr(), targets.data_ptr(), rows_at(x), loss, temperature, _address(temperatures), g.data_ptr(),
            sums.data_ptr(), slope.data_ptr(), threads(),
        )  # fmt: skip
        return slope, None, None, None, None


def _visible_slope(x: Tensor, targets: Tensor, temperature: Any, loss: Loss, g: Tensor) -> Tensor:
    """Compute the gradient with operations that autograd can differentiate again."""
    wide, counted = row_dtype(x), targets != loss.ignored
    g = g.to(wide)
    if loss.reduction == kernels.REDUCTIONS["mean"]:
        g = g / counted.sum().clamp(min=1)
    at = targets.masked_fill(~counted, 0).unsqueeze(-1)
    p = softmax(x.to(wide), temperature, None)
    pulled = p.scatter_add(-1, at, torch.full_like(at, loss.smoothing - 1.0, dtype=wide)) - loss.smoothing / x.shape[-1]
    slope = pulled * (g.unsqueeze(-1) / like(temperature, wide))
    return slope.masked_fill(~counted.unsqueeze(-1), 0.0).to(x.dtype)
