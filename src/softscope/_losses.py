"""Losses on logits: cross_entropy and distillation_loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softscope._arguments.arrays import Array, beside, dtype_name, floating, giver, is_tensor, namespace
from softscope._arguments.axes import Rows, one_axis
from softscope._arguments.checks import number, short, temperature_for_rows, whole_number
from softscope._arguments.seen import seen
from softscope._backends.choose import backend_of, plain_cross_entropy, plain_distillation
from softscope._backends.numpy.maps import rounded

HOTTEST = 1e150  # the square of a distillation's temperature is finite
_REDUCTIONS = ("mean", "sum", "none")


def cross_entropy(
    logits: Array,
    targets: Array,
    *,
    axis: int = -1,
    temperature: Any = 1.0,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """Compute −log softmax(logits/T)[target], averaged over the rows that are not ignored.

    Args:
        logits: Real numbers, with the classes along `axis`.
        targets: Class indices, in the shape of logits without `axis`.
        axis: The class axis, an int.
        temperature: A number > 0, or an array that broadcasts against logits with the axis kept as 1.
        label_smoothing: ε in [0, 1]. The target keeps 1−ε; ε is spread over all classes.
        ignore_index: Rows with this target are ignored. If all rows are, the mean is 0.
        reduction: "mean", "sum" or "none" (one loss per row, 0 where ignored).

    >>> import softscope as ss
    >>> round(float(ss.cross_entropy([[0.0, 0.0], [0.0, 4.0]], [0, 1])), 4)
    0.3556
    """
    if type(axis) is int and axis == -1:
        quick = plain_cross_entropy(logits, targets, temperature, label_smoothing, ignore_index, reduction)
        if quick is not None:
            return quick
    x = floating(logits, "logits")
    rows = Rows(x.shape, one_axis(axis))
    if x.ndim == 0:
        raise ValueError("logits must have an axis of classes, but got a single number; pass (…, classes)")
    t = temperature_for_rows(temperature, x, rows)
    epsilon = checked_smoothing(label_smoothing)
    checked_reduction(reduction)
    ignored = whole_number(ignore_index, "ignore_index")
    classes, counted = counted_classes(class_indices(targets, x, rows.lead), rows.n, ignored)
    if rows.n == 0:
        losses = namespace(x).zeros_like(classes) * 1.0
    else:
        losses = backend_of(x).cross_entropy(rows.bring(x), classes, t, epsilon)
    losses = reduced(losses, counted, reduction)
    result = losses.to(x.dtype) if is_tensor(x) else rounded(losses, x.dtype)
    return giver(logits)(result)


def checked_smoothing(label_smoothing: Any) -> float:
    """Return label_smoothing as a float in [0, 1]."""
    epsilon = number(label_smoothing, "label_smoothing", "a number in [0, 1]")
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"label_smoothing must lie in [0, 1], but got {short(label_smoothing)}; pass 0.1, for example")
    return epsilon


def checked_reduction(reduction: Any) -> None:
    """Refuse what is no reduction."""
    if reduction not in _REDUCTIONS:
        raise ValueError(
            f"reduction must be one of {', '.join(_REDUCTIONS)}, but got {short(reduction)}; pass one of these"
        )


def class_indices(targets: Any, x: Array, lead: tuple[int, ...]) -> Array:
    """Return the targets as int64, one for each row; their values are not checked."""
    array = beside(targets, x, "targets")
    if tuple(array.shape) != lead:
        raise ValueError(
            f"targets must have the shape of logits without the class axis, {lead}, but has "
            f"{tuple(array.shape)}; give one class index for each row"
        )
    if not dtype_name(array).startswith(("int", "uint")) and math.prod(array.shape) > 0:
        raise TypeError(f"targets must be integers (class indices), but its dtype is {dtype_name(array)}; convert it")
    return array.to(namespace(x).int64) if is_tensor(array) else array.astype(np.int64)


def counted_classes(classes: Array, n: int, ignore_index: int) -> tuple[Array, Array | None]:
    """Return the classes (0 where ignored) and a mask of the rows that count, or None if all visibly do."""
    xp = namespace(classes)
    look = seen(classes) and math.prod(classes.shape) > 0 and not 0 <= ignore_index < n
    if look and int(classes.min()) >= 0 and int(classes.max()) < n:
        return classes, None
    counted = classes != ignore_index
    outside = counted & ((classes < 0) | (classes >= n))
    if seen(outside) and bool(outside.any()):
        raise ValueError(
            f"targets must lie in [0, {n}) or be ignore_index = {ignore_index}, but holds "
            f"{int(classes[outside].reshape(-1)[0])}; correct the targets or set ignore_index"
        )
    return xp.where(counted, classes, xp.zeros_like(classes)), counted


def reduced(losses: Array, counted: Array | None, reduction: str) -> Array:
    """Return the losses, their sum or their mean over the rows that count."""
    xp = namespace(losses)
    if counted is not None:
        losses = xp.where(counted, losses, xp.zeros_like(losses))
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    # max(count, 1): the mean over no rows is 0, not 0/0
    count = math.prod(losses.shape) if counted is None else xp.maximum(counted.sum(), xp.ones_like(counted.sum()))
    return losses.sum() / count


def distillation_loss(student: Array, teacher: Array, *, temperature: Any) -> Array:
    """Compute T²·KL(softmax(teacher/T) ‖ softmax(student/T)), averaged over the rows of the last axis.

    T² undoes the factor 1/T² that the temperature puts into the gradient (Hinton et al. 2015). Classes to which
    the teacher gives weight 0 add nothing.

    >>> import softscope as ss
    >>> float(ss.distillation_loss([1.0, 2.0], [1.0, 2.0], temperature=4.0))
    0.0
    """
    quick = plain_distillation(student, teacher, temperature, HOTTEST)
    if quick is not None:
        return quick
    s = floating(student, "student")
    other = floating(beside(teacher, s, "teacher") if is_tensor(s) else teacher, "teacher")
    if is_tensor(s) != is_tensor(other):
        raise TypeError("teacher must be of the same kind as student, but only one is a torch tensor; convert one")
    if tuple(s.shape) != tuple(other.shape):
        raise ValueError(
            f"teacher must have the shape of student, {tuple(s.shape)}, but has {tuple(other.shape)}; match them"
        )
    rows = Rows(s.shape, -1)
    t = temperature_for_rows(temperature, s, rows)
    if isinstance(t, float) and t > HOTTEST:
        raise ValueError(f"temperature must be at most {HOTTEST:g}, but got {short(temperature)}; pass a smaller one")
    mean = backend_of(s).distillation(rows.bring(s), rows.bring(other), t)
    return giver(student)(mean.to(s.dtype) if is_tensor(s) else rounded(mean, s.dtype))
