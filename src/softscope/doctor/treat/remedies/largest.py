"""The largest |scale·q·k| of every head over all visible query-key pairs, as QK-clip needs it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import torch

import softscope
from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope.doctor.listen import functions, module_paths, patches
from softscope.doctor.listen.observed_call import ObservedCall, hidden_keys_at_infinity, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


class _Largest:
    """Listens to every call and keeps each head's largest logit in `found`."""

    def __init__(self, model: nn.Module, found: dict[str, list[float]]) -> None:
        self.thread, self.paths, self.found = threading.get_ident(), module_paths.paths(model), found
        self.model = model

    def hear(self, observed: ObservedCall) -> None:
        """Receive one call."""
        place = module_paths.innermost(self.paths)
        if place is None or observed.q is None or observed.k is None:
            return
        with quiet(observed.q.device):
            new = _of(observed)
            site = module_paths.site_name(place, observed.below, self.model)
            old = self.found.get(site)
            self.found[site] = (new if old is None else new.maximum(new.new_tensor(old))).tolist()

    def trouble(self, error: Exception) -> None:
        """Receive the error of a call that could not be read."""
        raise error


@contextlib.contextmanager
def largest_logits(model: nn.Module) -> Iterator[dict[str, list[float]]]:
    """Measure the largest |scale·q·k| of each head, per site, for everything the model computes inside the `with`.

    Measured before soft cap and mask, over visible keys; the largest over all calls of a site. Costs about twice as
    much as the attention itself.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> with remedies.largest_logits(model) as largest:
    ...     _ = model(*3 * [torch.zeros(1, 5, 8)])
    >>> largest
    {'MultiheadAttention': [0.0, 0.0]}
    """
    found: dict[str, list[float]] = {}
    listener = _Largest(model, found)
    patches.listen(listener, functions.all_patches(model))
    try:
        yield found
    finally:
        patches.stop(listener)


def _of(observed: ObservedCall) -> Tensor:
    """One number per head."""
    assert observed.q is not None
    assert observed.k is not None
    options = observed.options
    dtype = torch.promote_types(observed.q.dtype, torch.float32)
    q, k = observed.q.to(dtype) * options.scale, observed.k.to(dtype)
    where: dict[str, Any] = {
        "window": (options.left, options.right),
        "query_start": int(options.positions[0]),
        "mask": hidden_keys_at_infinity(options.mask) if observed.logits is None else ~logit_is_hidden(observed.logits),
    }
    both: list[Any] = [softscope.attention_partition(side, k, scale=1.0, **where) for side in (q, -q)]
    return torch.maximum(*(found.max_logit for found in both)).transpose(0, 1).flatten(1).amax(dim=1)
