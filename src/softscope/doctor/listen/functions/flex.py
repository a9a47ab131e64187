"""`torch.nn.attention.flex_attention`, compiled or not: its mask and score functions are evaluated, not guessed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from softscope._arguments.attention import Options
from softscope.doctor.listen import reasons
from softscope.doctor.listen.follow.scales import before_scaling
from softscope.doctor.listen.observed_call import ObservedCall, UnseenError, dtype_of, positions
from softscope.doctor.listen.patches import Patch
from softscope.doctor.listen.wrappers import told

_HOME = "torch.nn.attention.flex_attention"
# Scores at which a score function is looked at: far enough apart that a cap shows.
_SCORES = (0.0, 1.0, -2.0, 30.0)


def _always(*_: Any, **__: Any) -> bool:
    return True


def patches(model: nn.Module, homes: list[ModuleType]) -> list[Patch]:
    """The function, and its compiled versions: under a name of a Python module, or as an attribute of the model's."""
    home = sys.modules.get(_HOME)
    if home is None:
        return []
    function = home.flex_attention
    owners: list[Any] = [*homes, *model.modules()]
    found = [
        Patch(owner, name, told(describe, lift=_always))
        for owner in owners
        for name, value in list(vars(owner).items())
        if value is function or (callable(value) and _original(value) is function)
    ]
    return [Patch(home, "flex_attention", told(describe, lift=_always)), *found]


def _original(value: Any) -> Any:
    """What was compiled to this; asked of everything that a module holds, whatever it answers."""
    try:
        return getattr(value, "_torchdynamo_orig_callable", None)
    except Exception:  # a stranger's object
        return None


def describe(
    result: Any, query: Tensor, key: Tensor, value: Tensor, score_mod: Any = None, block_mask: Any = None,
    scale: float | None = None, *_: Any, **__: Any,
) -> ObservedCall:  # fmt: skip
    """Describe the call."""
    output = result[0] if isinstance(result, tuple) else result
    n, m = query.shape[2], key.shape[2]
    shape = (query.shape[0], query.shape[1], n, m)
    mask = None if block_mask is None else mask_of(block_mask, shape, query.device)
    bias, softcap = (None, None) if score_mod is None else added_by(score_mod, shape, query)
    given = float(query.shape[-1] ** -0.5 if scale is None else scale)
    q, k, given = before_scaling(query.detach(), key.detach(), given, query, key)
    return ObservedCall(
        kind="flex", result=output, gradient=lambda grad: grad, heads=shape[1], n=n, m=m, q=q, k=k, v=value.detach(),
        options=Options(given, positions(n, 0, query), mask=both(mask, bias), softcap=softcap),
        kv_heads=key.shape[1], dtype=dtype_of(query),
    )  # fmt: skip


def both(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """One mask that hides what `mask` hides and adds `bias`."""
    if mask is None or bias is None:
        return mask if bias is None else bias
    return bias.masked_fill(~mask, -math.inf)


def mask_of(block_mask: Any, shape: tuple[int, ...], device: torch.device) -> Tensor | None:
    """The keys that a BlockMask shows, (B or 1, heads or 1, n, m); None if all."""
    own = (1, 1, *(int(x) for x in block_mask.shape))[-4:-2]  # 1 where the mask is shared
    batch, heads = (1 if size == 1 else full for size, full in zip(own, shape[:2], strict=True))
    with torch.no_grad():
        shown: Tensor = _everywhere(block_mask.mask_mod, (batch, heads, *shape[2:]), device)
    return None if shown.all() else shown


def added_by(score_mod: Any, shape: tuple[int, ...], like: Tensor) -> tuple[Tensor | None, float | None]:
    """What a score function adds, and its soft cap: c·tanh(score/c) + something that the score has no part in."""
    with torch.no_grad():
        at = [_scored(score_mod, shape, like, score) for score in _SCORES]
        bias = at[0]
        seen = torch.isfinite(bias)
        if any(not torch.equal(torch.isfinite(x), seen) for x in at):
            raise UnseenError(reasons.SCORE)
        changes = [(x - bias)[seen].double() for x in at[1:]]
        if not changes[0].numel():
            return bias, None
        softcap = _cap(float(changes[-1].flatten()[0]))
        for score, change in zip(_SCORES[1:], changes, strict=True):
            wanted = score if softcap is None else softcap * math.tanh(score / softcap)
            rounding = 8 * torch.finfo(at[0].dtype).eps * (1.0 + bias[seen].abs().double() + abs(score))
            if not ((change - wanted).abs() <= rounding).all():
                raise UnseenError(reasons.SCORE)
    return (None if seen.all() and not bias.any() else bias), softcap


def _cap(change: float) -> float | None:
    """The c with c·tanh(score/c) = change at the largest score; None if nothing is capped."""
    score = _SCORES[-1]
    if not 0.0 < change < score * (1.0 - 1e-6):
        return None
    low, high = change, 1e4 * score
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if middle * math.tanh(score / middle) < change else (low, middle)
    return high


def _scored(score_mod: Callable[..., Any], shape: tuple[int, ...], like: Tensor, score: float) -> Tensor:
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    scores = torch.full((), score, dtype=dtype, device=like.device)
    return _everywhere(lambda *at: score_mod(scores, *at), shape, like.device)


def _everywhere(function: Callable[..., Any], shape: tuple[int, ...], device: torch.device) -> Tensor:
    """The values of a function of (batch, head, query, key) at all of them."""
    inner = function
    for axis in (3, 2, 1, 0):
        inner = torch.vmap(inner, in_dims=tuple(0 if i == axis else None for i in range(4)))
    numbers = [torch.arange(size, device=device, dtype=torch.int) for size in shape]
    found: Tensor = inner(*numbers)
    return found.expand(shape) if found.shape == shape else found.reshape(shape)
