"""Changes one head in every call of its site, by writing another result over the one that the model goes on with.

An intervention listens as the probe does, so it reaches every function that the probe can read, and the model itself is
never changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from typing import TYPE_CHECKING

import torch

from softscope._arguments.attention import Call, Options
from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope._backends.torch import dense_attention
from softscope._backends.torch.row_reading import computing
from softscope.doctor.listen import functions, module_paths, patches
from softscope.doctor.listen.observed_call import ObservedCall, hidden_keys_at_infinity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


class CannotTryError(Exception):
    """The head's result cannot be replaced; the message says why."""


class Listening:
    """Calls `heard(site, call)` for every attention call of the model in this thread, as the probe names sites."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.paths, self.thread = model, module_paths.paths(model), threading.get_ident()
        self.calls: dict[str, int] = {}
        self.error: Exception | None = None

    def hear(self, observed: ObservedCall) -> None:
        """Receive one call."""
        place = module_paths.innermost(self.paths)
        if place is None:
            return
        path = module_paths.site_name(place, observed.below, self.model)
        self.calls[path] = self.calls.get(path, 0) + 1
        self.heard(path if self.calls[path] == 1 else f"{path}#{self.calls[path]}", observed)

    def heard(self, site: str, observed: ObservedCall) -> None:
        """Receive one call with its site."""

    def trouble(self, error: Exception) -> None:
        """Keep the first error; it would otherwise be lost in the model's forward pass."""
        self.error = self.error or error

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Listen to one forward pass."""
        self.calls, self.error = {}, None
        patches.listen(self, functions.all_patches(self.model))
        try:
            yield
        finally:
            patches.stop(self)
        if self.error is not None:
            raise self.error


class Spreads(Listening):
    """Measures the standard deviation of the visible logits within a row, on average, of every head of every site."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.found: dict[str, list[Tensor]] = {}

    def heard(self, site: str, observed: ObservedCall) -> None:
        """Measure one call."""
        x, visible = _logits(observed, slice(None), 1.0)
        n = visible.sum(dim=-1)
        mean = x.masked_fill(~visible, 0.0).sum(dim=-1) / n
        away = (x - mean.unsqueeze(-1)).masked_fill(~visible, 0.0)
        spread = (away.square().sum(dim=-1) / n).sqrt()
        self.found.setdefault(site, []).append(spread.transpose(0, 1).flatten(1).nanmean(dim=-1))

    def of(self, site: str, head: int) -> float:
        """The mean over all calls; NaN if the site was never called."""
        values = [float(x[head]) for x in self.found.get(site, []) if head < x.shape[0]]
        return math.nan if not values else sum(values) / len(values)


class Intervention(Listening):
    """Divides the logits of one head by a temperature; infinity makes it uniform over the keys it sees."""

    def __init__(self, model: nn.Module, site: str, head: int, temperature: float) -> None:
        super().__init__(model)
        self.site, self.head, self.temperature = site, head, temperature
        self.done = 0

    def heard(self, site: str, observed: ObservedCall) -> None:
        """Replace what the head gave."""
        if site != self.site:
            return
        whole = observed.gradient(observed.result)  # its axes are those of the gradient: (B, heads, n, …)
        if whole.untyped_storage().data_ptr() != observed.result.untyped_storage().data_ptr():
            raise CannotTryError("its result is not laid out by head")
        if self.head >= observed.heads:
            raise CannotTryError(f"it has {observed.heads} heads")
        head = slice(self.head, self.head + 1)
        x, visible = _logits(observed, head, self.temperature)
        if observed.weights is not None:
            new = dense_attention.weights(x, visible, None, 1.0)
        elif observed.v is None:
            raise CannotTryError("PyTorch computes it in one fused call")
        else:
            options = _options(observed, head, self.temperature)
            p = dense_attention.weights(x, visible, options.sink, options.alpha)
            v = observed.v[:, self.head // (observed.heads // observed.v.shape[1])].unsqueeze(1)
            new = dense_attention.weighted_sum(p, visible, v.to(p.dtype))
        whole[:, head].copy_(new)
        self.done += 1


def _options(observed: ObservedCall, head: slice, temperature: float) -> Options:
    options = observed.options
    scale = options.scale[head] if isinstance(options.scale, torch.Tensor) and options.scale.ndim else options.scale
    sink = options.sink[head] if isinstance(options.sink, torch.Tensor) and options.sink.ndim else options.sink
    mask = hidden_keys_at_infinity(options.mask)
    if mask is not None and mask.ndim >= 3 and mask.shape[-3] > 1:
        mask = mask[..., head, :, :]
    return dataclasses.replace(options, scale=scale / temperature, sink=sink, mask=mask)


def _logits(observed: ObservedCall, head: slice, temperature: float) -> tuple[Tensor, Tensor]:
    """The logits of these heads at a temperature, and which keys are visible, (B, heads, n, m)."""
    if observed.logits is not None:
        x = observed.logits[:, head]
        visible = ~logit_is_hidden(x)
        x = x.to(computing(x)).masked_fill(~visible, 0.0) / temperature
        return x, visible
    assert observed.q is not None
    assert observed.k is not None
    group = observed.heads // observed.k.shape[1]
    k = observed.k.repeat_interleave(group, dim=1) if group > 1 else observed.k
    call = Call(observed.q[:, head], k[:, head], None, _options(observed, head, temperature))
    _, x, visible = dense_attention.logits(call, None, computing(observed.q))
    return x, visible
