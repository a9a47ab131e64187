"""What an intercepted call was: its tensors and options in one form, whatever function computed it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softscope._arguments.attention import _LOWEST
from softscope.doctor.listen.reasons import Reason

# An explicit softmax shows logits with the mask already added. What lies at or below this is hidden: masks of −1e6,
# −1e9 and finfo.min are all in use, and logits of this size are not.
HIDDEN = -5e5
# So is what lies around −10000, the constant of BERT, GPT-2 and many tutorials, in a row that has more to offer: at
# that distance weights are 0 in every dtype.
TEN_THOUSAND, AROUND = -1e4, 1e3


class UnseenError(Exception):
    """A call that cannot be read, and why: a code of `reasons`, with what it leaves open."""

    def __init__(self, code: str, *values: object) -> None:
        self.reason = Reason(code, tuple(map(str, values)))
        super().__init__(str(self.reason))


@dataclasses.dataclass(eq=False)
class ObservedCall:
    """One call of attention. Tensors are detached and shared, not copied.

    Either q and k are there, and with v the weights' gradient follows from the output's; or logits and weights
    (B, heads, n, m) are, as an explicit softmax shows them, and their gradient is seen itself.
    """

    kind: str
    result: Tensor  # what a hook for the gradient goes on: the output, or the weights
    gradient: Callable[[Tensor], Tensor]  # of the result, as (B, heads, n, dv) or (B, heads, n, m)
    heads: int
    n: int
    m: int
    q: Tensor | None = None  # (B, heads, n, d)
    k: Tensor | None = None  # (B, kv_heads, m, d)
    v: Tensor | None = None  # (B, kv_heads, m, dv)
    scale: Any = math.nan  # a number, or (heads, 1, 1)
    left: int | None = None
    right: int | None = None
    start: Any = 0  # the key position of query 0
    mask: Tensor | None = None  # broadcasts to (B, heads, n, m)
    softcap: float | None = None
    sink: Any = None
    alpha: float = 1.0
    logits: Tensor | None = None
    weights: Tensor | None = None
    kv_heads: int = 0
    dropout: float = 0.0
    fused: bool = True
    causal: bool = False  # what is said of it; what is hidden, right and mask say
    dtype: str = "float32"
    below: str = ""  # what follows the module's path in the site's name

    def queries_and_keys(self) -> bool:
        """Whether the readings come from q and k."""
        return self.weights is None


def dtype_of(x: Tensor) -> str:
    """The name of its dtype: float32, bfloat16, …."""
    return str(x.dtype).removeprefix("torch.")


def heads_axis(x: Tensor, heads: int | None = None) -> Tensor:
    """(…, n, d) as (B, heads, n, d). Three axes are (batch, n, d) of one head, or heads of one entry if it says so."""
    if x.ndim == 2:
        return x[None, None]
    if x.ndim == 3:
        return x[None] if heads is not None and heads == x.shape[0] else x[:, None]
    return x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])


def mask_axes(mask: Tensor | None, shape: tuple[int, ...], heads: int | None = None) -> Tensor | None:
    """The mask of weights of that shape (…, n, m), as it broadcasts to (B, heads, n, m)."""
    if mask is None or len(shape) == 4 or mask.ndim <= 2:
        return mask
    if len(shape) == 3:
        return mask[None] if heads is not None and heads == shape[0] else mask[:, None]
    return mask.expand(shape).reshape(-1, *shape[-3:])


def shown_by(mask: Tensor) -> Tensor:
    """Which keys a mask shows: boolean as it is, additive above half the lowest number."""
    return mask if mask.dtype == torch.bool else mask > _LOWEST[dtype_of(mask)] / 2


def quiet(device: torch.device) -> contextlib.ExitStack:
    """No gradients and no autocast, for what the doctor computes itself."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        stack.enter_context(torch.autocast(device.type, enabled=False))
    return stack


def is_hidden(logits: Tensor) -> Tensor:
    """Where a mask was added to logits, (…, keys)."""
    hidden = logits <= max(HIDDEN, torch.finfo(logits.dtype).min / 2)
    around = (logits - TEN_THOUSAND).abs() <= AROUND
    if logits.shape[-1] and bool(around.any()):
        hidden = hidden | (around & (logits.amax(dim=-1, keepdim=True) > TEN_THOUSAND + 2.0 * AROUND))
    return hidden


@torch.no_grad()
def padding(observed: ObservedCall) -> Tensor | None:
    """Which keys anybody sees, (B or 1, m), or None where all are seen: keys that nobody sees are padding."""
    if observed.logits is not None:
        shown = ~is_hidden(observed.logits)
        return shown.any(dim=-2).any(dim=1)
    if observed.mask is None:
        return None
    shown = shown_by(observed.mask)
    while shown.ndim < 4:
        shown = shown[None]
    some = shown.any(dim=-2).any(dim=1)
    return some.expand(some.shape[0], observed.m)
