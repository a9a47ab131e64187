"""An observed attention call: its tensors and options in one form, whichever function computed it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from softscope._arguments.attention import Options
from softscope._backends.reference.visible_keys import logit_is_hidden
from softscope.doctor.listen.reasons import Reason


class Shards(NamedTuple):
    """Keys and values of which every rank of a group holds a part, and queries at the same positions."""

    group: Any
    layout: Literal["contiguous", "zigzag"]


class UnseenError(Exception):
    """A call that cannot be read: a code from `reasons` and the values for its sentence."""

    def __init__(self, code: str, *values: object) -> None:
        self.reason = Reason(code, tuple(map(str, values)))
        super().__init__(str(self.reason))


@dataclasses.dataclass(eq=False)
class ObservedCall:
    """One attention call. Tensors are detached and shared, not copied.

    There are two cases. Either q and k are present, and with v the gradient of the weights follows from that of the
    output. Or logits and weights (B, heads, n, m) are present, from an explicit softmax, and the gradient is observed
    directly.
    """

    kind: str
    result: Tensor  # the tensor to hook for the gradient: the output, or the weights
    gradient: Callable[[Tensor], Tensor]  # of the result, as (B, heads, n, dv) or (B, heads, n, m)
    heads: int
    n: int
    m: int
    options: Options  # how the n queries see the m keys; for an explicit softmax at most the scale is known
    start: int | None = 0  # position of query 0 among the keys; None if reading it would wait for the device
    q: Tensor | None = None  # (B, heads, n, d)
    k: Tensor | None = None  # (B, kv_heads, m, d)
    v: Tensor | None = None  # (B, kv_heads, m, dv)
    logits: Tensor | None = None
    weights: Tensor | None = None
    kv_heads: int = 0
    dropout: float = 0.0
    fused: bool = True
    causal: bool = False  # as declared by the call; the options hold what it actually hides
    dtype: str = "float32"
    below: str = ""  # appended to the module's path in the site's name
    real: Tensor | None = None  # (B, m): which keys are tokens and no padding, as the model's arguments say
    tokens: Tensor | None = None  # (B, m): their ids
    first: bool = False  # keys of the first layer, where equal tokens differ only by their positions
    shards: Shards | None = None  # where the other keys are
    places: Sequence[int] | None = None  # positions of the queries among all keys, once these are here


def positions(n: int, start: int, like: Tensor) -> Tensor:
    """Positions of n queries among the keys, the first at `start`."""
    return torch.arange(start, start + n, device=like.device)


def dtype_of(x: Tensor) -> str:
    """The name of its dtype: float32, bfloat16, …."""
    return str(x.dtype).removeprefix("torch.")


def heads_axis(x: Tensor, heads: int | None = None) -> Tensor:
    """Reshape (…, n, d) to (B, heads, n, d).

    Three axes mean (batch, n, d) with one head, or (heads, n, d) of one entry if the first axis is `heads` long.
    """
    if x.ndim == 2:
        return x[None, None]
    if x.ndim == 3:
        return x[None] if heads is not None and heads == x.shape[0] else x[:, None]
    return x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])


def mask_axes(mask: Tensor | None, shape: tuple[int, ...], heads: int | None = None) -> Tensor | None:
    """Reshape the mask for weights of shape (…, n, m) so that it broadcasts to (B, heads, n, m)."""
    if mask is None or len(shape) == 4 or mask.ndim <= 2:
        return mask
    if len(shape) == 3:
        return mask[None] if heads is not None and heads == shape[0] else mask[:, None]
    return mask.expand(shape).reshape(-1, *shape[-3:])


def hidden_keys_at_infinity(mask: Tensor | None) -> Tensor | None:
    """The mask with −inf in place of −10000, −1e9 and finfo.min, so that what it hides is hidden for every reader.

    To the model such a key has weight 0. Counted as visible, it would make every row look sharp.
    """
    if mask is None or mask.dtype == torch.bool:
        return mask
    return mask.masked_fill(logit_is_hidden(mask), -torch.inf)


def quiet(device: torch.device) -> contextlib.ExitStack:
    """A context without gradients and autocast, for the doctor's own computations."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        stack.enter_context(torch.autocast(device.type, enabled=False))
    return stack


@torch.no_grad()
def padding(observed: ObservedCall) -> Tensor | None:
    """Which keys at least one query sees, (B or 1, m), or None if all are seen: keys that nobody sees are padding."""
    if observed.logits is not None:
        shown = ~logit_is_hidden(observed.logits)
        return shown.any(dim=-2).any(dim=1)
    mask = observed.options.mask
    if mask is None:
        return None
    shown = mask if mask.dtype == torch.bool else ~logit_is_hidden(mask)
    while shown.ndim < 4:
        shown = shown[None]
    some = shown.any(dim=-2).any(dim=1)
    return some.expand(some.shape[0], observed.m)
