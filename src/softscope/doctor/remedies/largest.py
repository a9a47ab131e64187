"""The largest |scale·q·k| of every head, over every visible pair of a query and a key: what QK-clip needs to know."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import torch

import softscope
from softscope.doctor import attach, names, seams
from softscope.doctor.seen import HIDDEN, Seen, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


class _Largest:
    """Hears every call, and keeps the largest of each head in `found`."""

    def __init__(self, model: nn.Module, found: dict[str, list[float]]) -> None:
        self.thread, self.paths, self.found = threading.get_ident(), names.paths(model), found

    def hear(self, seen: Seen) -> None:
        """One call."""
        place = names.innermost(self.paths)
        if place is None or seen.q is None or seen.k is None:
            return
        with quiet(seen.q.device):
            new = _of(seen)
            old = self.found.get(place[0] + seen.below)
            self.found[place[0] + seen.below] = (new if old is None else new.maximum(new.new_tensor(old))).tolist()

    def trouble(self, error: Exception) -> None:
        """One call that could not be read."""
        raise error


@contextlib.contextmanager
def largest_logits(model: nn.Module) -> Iterator[dict[str, list[float]]]:
    """Measure what the model computes inside the `with`: for each site the largest |scale·q·k| of each head.

    Before soft cap and mask, over visible keys, the largest over all calls of a site. Costs about as much as the
    attention itself, twice.
    """
    found: dict[str, list[float]] = {}
    listener = _Largest(model, found)
    seams.listen(listener, attach.all_seams(model))
    try:
        yield found
    finally:
        seams.stop(listener)


def _of(seen: Seen) -> Tensor:
    """One number for each head."""
    assert seen.q is not None
    assert seen.k is not None
    inner = torch.promote_types(seen.q.dtype, torch.float32)
    q, k = seen.q.to(inner) * seen.scale, seen.k.to(inner)
    mask = seen.mask
    if seen.logits is not None:
        mask = seen.logits > max(HIDDEN, torch.finfo(seen.logits.dtype).min / 2)
    where: dict[str, Any] = {"window": (seen.left, seen.right), "query_start": int(seen.start), "mask": mask}
    both: list[Any] = [softscope.attention_partition(side, k, scale=1.0, **where) for side in (q, -q)]
    return torch.maximum(*(found.max_logit for found in both)).transpose(0, 1).flatten(1).amax(dim=1)
