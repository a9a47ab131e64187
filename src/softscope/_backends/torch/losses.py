"""Cross-entropy and distillation losses of rows of tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softscope._backends.torch.dtypes import like, row_dtype
from softscope._backends.torch.maps import log_softmax, softmax


def cross_entropy(x: Tensor, targets: Tensor, temperature: Any, label_smoothing: float) -> Tensor:
    """Compute −log p[target] of each row, in `row_dtype`; the public function reduces before it rounds."""
    log_p = log_softmax(x.to(row_dtype(x)), temperature, None)
    loss = -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        loss = (1.0 - label_smoothing) * loss - label_smoothing * log_p.mean(dim=-1)
    return loss


def distillation(student: Tensor, teacher: Tensor, temperature: Any) -> Tensor:
    """Compute each row's T²·KL(teacher‖student); classes with teacher weight 0 add nothing."""
    wide = row_dtype(student)
    student, teacher = student.to(wide), teacher.to(wide)
    p = softmax(teacher, temperature, None)
    none = p == 0.0
    log_p = log_softmax(teacher, temperature, None).masked_fill(none, 0.0)
    log_q = log_softmax(student, temperature, None).masked_fill(none, 0.0)
    t = like(temperature, wide)
    return (p * (log_p - log_q) * (t * t)).sum(dim=-1)
