"""Cross-entropy and distillation losses of rows of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softscope import _engine
from softscope._backends.engine import quick
from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.engine_memory import flows, reachable, single, threads, unwatched
from softscope._backends.torch.maps import log_softmax, softmax


def cross_entropy(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
    """Compute −log p[target] of each row, in `row_dtype`; the public function reduces before it rounds."""
    log_p = log_softmax(x.to(row_dtype(x)), temperature, None)
    loss = -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        loss = (1.0 - label_smoothing) * loss - label_smoothing * log_p.mean(dim=-1)
    return loss


def plain_distillation(student: Any, teacher: Any, temperature: float) -> Tensor | None:
    """Compute the mean loss of contiguous rows of CPU tensors in the engine; None for the full path."""
    ours, theirs = (_engine.rows_of(student), _engine.rows_of(teacher)) if unwatched() else (None, None)
    if ours is None or theirs is None or ours[1] != theirs[1] or flows(student) or flows(teacher):
        return None
    address, rows, ndim = ours
    if ndim != theirs[2] or (ndim > 2 and student.shape != teacher.shape):  # rows in another arrangement
        return None
    out = single(rows[2])
    _engine.distillation_at(address, theirs[0], out.data_ptr(), rows, temperature, 0, threads())
    return out


def distillation(student: Tensor, teacher: Tensor, temperature: Any) -> Tensor:
    """Compute the mean of the rows' T²·KL(teacher‖student); classes with teacher weight 0 add nothing."""
    given = [x for x in (student, teacher, temperature) if isinstance(x, Tensor)]
    if all(reachable(x) and not flows(x) for x in given):
        mean = quick.distillation(*(x.detach().double().numpy() if isinstance(x, Tensor) else x
                                    for x in (student, teacher, temperature)))  # fmt: skip
        return torch.tensor(mean, dtype=torch.float64)
    wide = row_dtype(student)
    student, teacher = student.to(wide), teacher.to(wide)
    p = softmax(teacher, temperature, None)
    none = p == 0.0
    log_p = log_softmax(teacher, temperature, None).masked_fill(none, 0.0)
    log_q = log_softmax(student, temperature, None).masked_fill(none, 0.0)
    t = like(temperature, wide)
    losses = (p * (log_p - log_q) * (t * t)).sum(dim=-1)
    return losses.sum() / max(losses.numel(), 1)
