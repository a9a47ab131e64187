"""Changes one head in every call of its site, by writing another result over the one that the model goes on with.

An intervention listens as the probe does, so it reaches every function that the probe can read, and the model itself is
never changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from softscope._arguments.attention import Call, Options
from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope._backends.torch import dense_attention
from softscope._backends.torch.row_reading import computing
from softscope._text import Text
from softscope.doctor.listen import functions, module_paths, patches
from softscope.doctor.listen.observed_call import ObservedCall, hidden_keys_at_infinity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn


class CannotTryError(Exception):
    """The head's result cannot be replaced; `why` says why."""

    def __init__(self, why: Text) -> None:
        super().__init__(why.en)
        self.why = why


NO_CALL = Text(zh="没有见到它的调用", en="no call of it was seen")
NO_LAYOUT = Text(zh="它的结果没有按头排列", en="its result is not laid out by head")
FUSED = Text(zh="PyTorch 用一个融合的调用算出它", en="PyTorch computes it in one fused call")


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
    """Measures, for every head of every site, the standard deviation of the visible logits within a row, on average.

    Where q and k are known, also their second moments: from these follows how far a matrix between q and k moves the
    logits.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.found: dict[str, list[Tensor]] = {}
        self.moments: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def heard(self, site: str, observed: ObservedCall) -> None:
        """Measure one call."""
        x, visible = _logits(observed, slice(None), 1.0)
        n = visible.sum(dim=-1)
        mean = x.masked_fill(~visible, 0.0).sum(dim=-1) / n
        away = (x - mean.unsqueeze(-1)).masked_fill(~visible, 0.0)
        spread = (away.square().sum(dim=-1) / n).sqrt()
        self.found.setdefault(site, []).append(spread.transpose(0, 1).flatten(1).nanmean(dim=-1))
        scale = observed.options.scale
        if observed.q is not None and observed.k is not None and not _unknown(scale):
            factor = scale.reshape(-1, 1, 1) if isinstance(scale, torch.Tensor) and scale.ndim else scale
            q, k = (y.to(computing(y)).transpose(0, 1).flatten(1, 2) for y in (observed.q, observed.k))
            k = k - k.mean(dim=1, keepdim=True)  # the same added to all logits of a row changes nothing
            moments = q.transpose(1, 2) @ q / q.shape[1] * factor**2, k.transpose(1, 2) @ k / k.shape[1]
            self.moments.setdefault(site, []).append(moments)

    def of(self, site: str, head: int) -> float:
        """The mean over all calls; NaN if the site was never called."""
        values = [float(x[head]) for x in self.found.get(site, []) if head < x.shape[0]]
        return math.nan if not values else sum(values) / len(values)

    def queries_and_keys(self, site: str, head: int) -> QueriesAndKeys | None:
        """The second moments of a head's q, times scale, and k, over all calls; None if they are unknown."""
        found = self.moments.get(site)
        if not found or head >= found[0][0].shape[0]:
            return None
        queries = torch.stack([q[head] for q, _ in found]).mean(dim=0)
        # Key heads may be shared in one call and repeated in the next: transformers repeats them only under a mask.
        keys = [k[head // (q.shape[0] // k.shape[0])] for q, k in found]
        return QueriesAndKeys(queries, torch.stack(keys).mean(dim=0))


class QueriesAndKeys(NamedTuple):
    """The second moments of a head's scaled queries and of its centred keys, (d, d)."""

    queries: Tensor
    keys: Tensor

    def spread(self, mixing: Tensor) -> float:
        """The standard deviation of what Δ adds to the logits."""
        return math.sqrt(max(float(((self.queries @ mixing) * (mixing @ self.keys)).sum()), 0.0))


class Intervention(Listening):
    """Divides the logits of one head by a temperature; infinity makes it uniform over the keys it sees.

    With `mixing`, a (d, d) matrix Δ, the logits become scale·(q·k + qΔ·k)/T: what the head would read if training had
    moved W_Q and W_K that far. Derivatives with respect to Δ are those of the whole model.
    """

    def __init__(
        self, model: nn.Module, site: str, head: int, temperature: float, mixing: Tensor | None = None
    ) -> None:
        super().__init__(model)
        self.site, self.head, self.temperature, self.mixing = site, head, temperature, mixing
        self.done = 0

    def heard(self, site: str, observed: ObservedCall) -> None:
        """Replace what the head gave."""
        if site != self.site:
            return
        whole = observed.gradient(observed.result)  # its axes are those of the gradient: (B, heads, n, …)
        if whole.untyped_storage().data_ptr() != observed.result.untyped_storage().data_ptr():
            raise CannotTryError(NO_LAYOUT)
        if self.head >= observed.heads:
            raise CannotTryError(Text(zh=f"它只有 {observed.heads} 个头", en=f"it has only {observed.heads} heads"))
        head = slice(self.head, self.head + 1)
        x, visible = _logits(observed, head, self.temperature)
        if self.mixing is not None:
            x = x + _moved(observed, head, self.temperature, self.mixing).masked_fill(~visible, 0.0)
        if observed.weights is not None:
            new = dense_attention.weights(x, visible, None, 1.0)
        elif observed.v is None:
            raise CannotTryError(FUSED)
        else:
            options = _options(observed, head, self.temperature)
            p = dense_attention.weights(x, visible, options.sink, options.alpha)
            v = observed.v[:, self.head // (observed.heads // observed.v.shape[1])].unsqueeze(1)
            new = dense_attention.weighted_sum(p, visible, v.to(p.dtype))
        whole[:, head].copy_(new)
        self.done += 1


def _unknown(scale: Any) -> bool:
    return isinstance(scale, float) and math.isnan(scale)


def _options(observed: ObservedCall, head: slice, temperature: float) -> Options:
    options = observed.options
    scale = options.scale[head] if isinstance(options.scale, torch.Tensor) and options.scale.ndim else options.scale
    sink = options.sink[head] if isinstance(options.sink, torch.Tensor) and options.sink.ndim else options.sink
    alpha = options.alpha[head] if isinstance(options.alpha, torch.Tensor) and options.alpha.ndim else options.alpha
    mask = hidden_keys_at_infinity(options.mask)
    if mask is not None and mask.ndim >= 3 and mask.shape[-3] > 1:
        mask = mask[..., head, :, :]
    return dataclasses.replace(options, scale=scale / temperature, sink=sink, mask=mask, alpha=alpha)


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


def _moved(observed: ObservedCall, head: slice, temperature: float, mixing: Tensor) -> Tensor:
    """What Δ adds to the logits: scale·qΔ·k/T, (B, 1, n, m)."""
    assert observed.q is not None
    assert observed.k is not None
    scale = _options(observed, head, temperature).scale
    group = observed.heads // observed.k.shape[1]
    keys = observed.k[:, head.start // group].unsqueeze(1).to(mixing.dtype)
    q = observed.q[:, head].to(mixing.dtype)
    added = scale * (q @ mixing) @ keys.transpose(-1, -2)
    sinks = 0 if observed.logits is None else observed.logits.shape[-1] - added.shape[-1]
    return torch.nn.functional.pad(added, (0, sinks)) if sinks > 0 else added
