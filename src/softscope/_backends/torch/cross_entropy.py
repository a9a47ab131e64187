"""Cross-entropy of CPU tensors: one kernel forward and one backward; the gradient is the only (rows × classes) array.

A row's loss and its gradient, with m = max x, z = Σ exp((x − m)/T) and the target's weight p_t:

    (1−ε)·((m − x_t)/T + log z) + ε·((m − mean x)/T + log z)          g/T·(p − ε/n),  minus g/T·(1−ε) at the target
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope import _engine
from softscope._arguments.checks import LARGEST, plain_number
from softscope._backends.engine import kernels
from softscope._backends.torch import backward, losses
from softscope._backends.torch.autograd import applied
from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.engine_memory import DTYPES, flows, reachable, rows_at, single, threads, unwatched
from softscope._backends.torch.maps import offered, softmax

if TYPE_CHECKING:
    from softscope._engine import LossAt


def plain_cross_entropy(
    x: Any, targets: Any, temperature: Any, smoothing: Any, ignored: Any, reduction: Any
) -> Tensor | None:
    """Take the short way for contiguous rows of classes; None if the full path is needed."""
    found = _engine.labelled_rows_of(x, targets) if unwatched() else None
    if found is None or type(ignored) is not int or not -LARGEST <= ignored <= LARGEST:
        return None
    rows = found[2]
    low, high = kernels.RANGES[rows[2]]
    t, epsilon = plain_number(temperature), plain_number(smoothing)
    if not low <= t <= high or not 0.0 <= epsilon <= 1.0:
        return None
    kind = kernels.REDUCTIONS.get(reduction) if type(reduction) is str else None
    if kind is None:
        return None
    loss = ignored, epsilon, kind
    if x.requires_grad and torch.is_grad_enabled():
        try:
            result = applied(_CrossEntropy, x, targets, t, None, loss)
        except NoClassError:
            return None  # the full path finds it, and the words for it
    else:
        result = single(rows[2]) if kind else torch.empty(targets.shape, dtype=torch.float64)
        address, classes, _ = found
        if not _engine.cross_entropy_at(address, classes, rows, loss, t, 0, result.data_ptr(), 0, threads()):
            return None
    return result if kind else result.to(x.dtype)


def cross_entropy(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
    """Compute each row's loss in float64; see `losses.cross_entropy` for the definition. Every target is a class."""
    if not (offered(x, temperature) and reachable(targets)):
        return losses.cross_entropy(x, targets, temperature, label_smoothing)
    rows, t = None, temperature
    if isinstance(temperature, Tensor):
        rows, t = temperature.detach().double().expand((*x.shape[:-1], 1)).contiguous(), 1.0
    return _losses(x.contiguous(), targets.contiguous(), t, rows, (-1, label_smoothing, 0))


class NoClassError(Exception):
    """A target is neither a class nor ignored."""


def _losses(x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: LossAt) -> Tensor:
    if flows(x):
        return applied(_CrossEntropy, x, targets, temperature, temperatures, loss)
    return _forward(x, targets, temperature, temperatures, loss, None)


def _forward(
    x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: LossAt, sums: Tensor | None
) -> Tensor:
    out = single(DTYPES[x.dtype]) if loss[2] else torch.empty(targets.shape, dtype=torch.float64)
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
        ctx: Any, x: Tensor, targets: Tensor, temperature: float, temperatures: Tensor | None, loss: LossAt
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


def _visible_slope(x: Tensor, targets: Tensor, temperature: Any, loss: LossAt, g: Tensor) -> Tensor:
    """Compute the gradient with operations that autograd can differentiate again."""
    ignored, smoothing, reduction = loss
    wide, counted = row_dtype(x), targets != ignored
    g = g.to(wide)
    if reduction == kernels.REDUCTIONS["mean"]:
        g = g / counted.sum().clamp(min=1)
    at = targets.masked_fill(~counted, 0).unsqueeze(-1)
    p = softmax(x.to(wide), temperature, None)
    pulled = p.scatter_add(-1, at, torch.full_like(at, smoothing - 1.0, dtype=wide)) - smoothing / x.shape[-1]
    slope = pulled * (g.unsqueeze(-1) / like(temperature, wide))
    return slope.masked_fill(~counted.unsqueeze(-1), 0.0).to(x.dtype)
