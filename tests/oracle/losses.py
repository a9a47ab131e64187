"""Cross-entropy, row by row, and distillation."""

from collections.abc import Sequence

from mpmath import mp, mpf

from oracle import rows
from oracle.rows import Number, Row, exact


def cross_entropy(
    logits: Sequence[Row],
    targets: Sequence[int],
    temperature: Number = 1,
    label_smoothing: Number = 0,
    ignore_index: int = -100,
) -> list[mpf | None]:
    """The loss of each row, -(1 - e) log p_target - e/C sum log p; None where the target is ignored."""
    e = exact(label_smoothing)
    losses: list[mpf | None] = []
    for row, target in zip(logits, targets, strict=True):
        if target == ignore_index:
            losses.append(None)
            continue
        with rows.enough_digits(row, temperature):
            log_p = rows.log_weights(row, temperature)
            spread = e / len(row) * mp.fsum(log_p) if e else mpf(0)
            losses.append(-(1 - e) * log_p[target] - spread)
    return losses


def mean_kept(losses: Sequence[mpf | None]) -> mpf:
    """The mean over the rows that are not ignored; 0 if all are."""
    kept = [loss for loss in losses if loss is not None]
    return mp.fsum(kept) / len(kept) if kept else mpf(0)


def distillation_loss(student: Sequence[Row], teacher: Sequence[Row], temperature: Number) -> mpf:
    """T^2 times the mean over rows of sum p (log p - log q), with p the teacher's weights and q the student's."""
    with mp.workdps(rows.DIGITS + 30):
        divergences = [_divergence(t, s, temperature) for t, s in zip(teacher, student, strict=True)]
        return exact(temperature) ** 2 * mp.fsum(divergences) / len(divergences)


def _divergence(teacher: Row, student: Row, temperature: Number) -> mpf:
    p, log_q = rows.weights(teacher, temperature), rows.log_weights(student, temperature)
    return mp.fsum(w * (mp.log(w) - lq) for w, lq in zip(p, log_q, strict=True) if w > 0)
