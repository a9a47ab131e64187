"""Cross-entropy of logits whose classes are sharded over the ranks of a group: vocabulary parallel."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from softscope._arguments.checks import whole_number
from softscope._backends.torch.dtypes import row_dtype
from softscope._losses import checked_reduction, checked_smoothing, class_indices, counted_classes, reduced
from softscope.distributed import _sums
from softscope.distributed._exchange import Lengths, exchange
from softscope.distributed._parts import RowsPart, applied, first_derivatives_only, rows_part
from softscope.distributed._placed import placed
from softscope.distributed._sums import Sums

if TYPE_CHECKING:
    from collections.abc import Sequence


def cross_entropy(
    logits: Any,
    targets: Any,
    *,
    group: Any = None,
    temperature: float = 1.0,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """Compute −log softmax(logits/T)[target], the classes being sharded over the ranks; the same on every rank.

    Rank r holds the classes that follow those of rank r − 1; parts may differ in length. One message a call, in which
    the rank that holds a target also sends its logit; none in the backward pass. To know who holds a target before the
    message, ranks use the lengths of the last call; where these have changed, and in the first call, there is one
    message more.

    Each rank's gradient is that of the one loss, as with PyTorch's `loss_parallel`: call backward on every rank.

    Args:
        logits: This rank's classes (…, n) as a torch tensor, or a DTensor.
        targets: Indices among all classes, in the shape of logits without the last axis, the same on every rank.
        group: As for `softmax`.
        temperature: A number > 0, the same on every rank.
        label_smoothing: ε in [0, 1]. The target keeps 1−ε; ε is spread over all classes.
        ignore_index: Rows with this target are ignored. If all rows are, the mean is 0.
        reduction: "mean", "sum" or "none" (one loss per row, 0 where ignored). If a DTensor's rows are sharded, too,
            the sum is a DTensor with partial placements, and the mean is refused, as in `loss_parallel`.

    >>> import torch
    >>> from torch import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> cross_entropy(torch.tensor([[0.0, 0.0], [0.0, 4.0]]), torch.tensor([0, 1]))
    tensor(0.3556)
    >>> dist.destroy_process_group()
    """
    place = placed(logits, group, "logits")
    rank = 0 if place.group is None else place.group.rank()

    def prepare() -> _LabelledPart:
        epsilon = checked_smoothing(label_smoothing)
        checked_reduction(reduction)
        if place.rows_are_sharded and reduction == "mean":
            raise ValueError(
                'reduction must be "sum" or "none" where the rows of logits are sharded, too, but got "mean"; '
                "divide the sum by the number of all rows"
            )
        ignored = whole_number(ignore_index, "ignore_index")
        part = rows_part(place.part, temperature, "cross_entropy", "logits")
        classes = class_indices(place.targets(targets), part.x, part.lead)
        agreed = {
            "label_smoothing": repr(epsilon), "ignore_index": str(ignored), "reduction": reduction,
            "targets": f"those with the checksum {_checksum(classes)}",
        }  # fmt: skip
        return _LabelledPart(
            part.x, part.lead, part.temperature, part.facts | agreed, classes.reshape(-1), epsilon, ignored, rank
        )

    part, (m, rest, wanted, *totals), lengths = exchange(place.group, "cross_entropy", prepare)
    classes, counted = counted_classes(part.classes, sum(lengths), part.ignored)
    wide = row_dtype(part.x)
    sums = _sums.merged(m, rest, part.temperature, wide)
    ends = torch.tensor(list(itertools.accumulate(lengths)), device=classes.device)
    owner = torch.searchsorted(ends, classes, right=True).clamp(max=len(lengths) - 1)
    target = wanted.gather(0, owner.unsqueeze(0)).squeeze(0).to(wide)
    mean = totals[0].to(wide).sum(dim=0) / sum(lengths) if totals else None
    at = torch.where(owner == rank, classes - sum(lengths[:rank]), -1)
    if counted is not None:
        at = torch.where(counted, at, -1)
    smoothing = _Smoothing(part.epsilon, part.epsilon / max(sum(lengths), 1))
    losses = applied(_CrossEntropy, part.x, *sums, target, mean, at, counted, part.temperature, smoothing)
    losses = losses.reshape(part.lead)
    loss = reduced(losses, None if counted is None else counted.reshape(part.lead), reduction).to(part.x.dtype)
    return place.of_rows(loss) if reduction == "none" else place.sum_of_rows(loss)


@dataclasses.dataclass(frozen=True)
class _LabelledPart(RowsPart):
    """Rows with their targets, indices among the classes of all ranks, and which rank this is."""

    classes: Tensor
    epsilon: float
    ignored: int
    rank: int

    def numbers(self, lengths: Lengths) -> Sequence[Tensor]:
        """m, z − 1 and the target's logit, 0 if it is another rank's; with smoothing also Σx."""
        x = self.x.detach()
        at = self.classes - sum(lengths[: self.rank])
        ours = (at >= 0) & (at < self.length)
        wanted = x.new_zeros(len(x))
        if self.length:
            found = x.gather(-1, at.clamp(0, self.length - 1).unsqueeze(-1)).squeeze(-1)
            wanted = torch.where(ours, found, wanted)
        totals = [x.sum(dim=-1, dtype=torch.float64)] if self.epsilon else []
        return *super().numbers(lengths), wanted, *totals


class _Smoothing(NamedTuple):
    epsilon: float
    share: float  # ε/n, of every class


class _CrossEntropy(torch.autograd.Function):
    """Each row's loss, as in `_backends.torch.cross_entropy`: the sums and the target's logit are of all ranks.

    `at` is where this rank has the target, or −1. The backward pass needs no other rank.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, m: Tensor, rest: Tensor, target: Tensor, mean: Tensor | None, at: Tensor,
        counted: Tensor | None, temperature: float, smoothing: _Smoothing,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(x, m, rest, target, at, counted)
        ctx.numbers = temperature, smoothing
        log_z = Sums(m, rest).log_z()
        loss = _distance(m, target, temperature) + log_z
        if mean is None:
            return loss
        return (1.0 - smoothing.epsilon) * loss + smoothing.epsilon * (_distance(m, mean, temperature) + log_z)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        x, m, rest, target, at, counted = ctx.saved_tensors
        temperature, (epsilon, share) = ctx.numbers
        sums = Sums(m, rest)
        factor = gradient / temperature
        slope = _sums.weights(x, sums, temperature, factor, -share * factor)
        # If the target has nearly all the weight, 1 − p has no digits left, but the sum of the other weights does.
        others = torch.where(target == m, rest, sums.z - torch.exp(-_distance(m, target, temperature)))
        pulled = factor * (epsilon - share - others / sums.z)
        rows = torch.nonzero(at >= 0).squeeze(-1)
        slope[rows, at[rows]] = pulled[rows].to(x.dtype)
        unasked = gradient == 0.0
        if counted is not None:
            unasked = unasked | ~counted
        slope[unasked] = 0.0  # also where a row that does not count holds NaN
        return slope, *[None] * 8


def _distance(m: Tensor, x: Tensor, temperature: float) -> Tensor:
    """Compute (m − x)/T from halves: the difference may overflow even if the quotient does not."""
    return m - x if temperature == 1.0 else (0.5 * m - 0.5 * x) / (0.5 * temperature)


def _checksum(classes: Tensor) -> str:
    return hashlib.blake2b(classes.cpu().contiguous().numpy().tobytes(), digest_size=8).hexdigest()
