"""Convert PyTorch's masks (True hides) to softscope's (True shows); additive masks mean the same in both."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from softscope._backends.reference.visible_keys import mask_shows


def joined(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, *, heads: tuple[int, ...], extra: int
) -> Tensor | None:
    """Combine the two masks of PyTorch's module into one mask for `softscope.attention`, or None.

    Args:
        attn_mask: (n, m), or (batch·heads, n, m).
        key_padding_mask: (batch, m), or (m,) without a batch.
        heads: (batch, heads), or (heads,); a three-dimensional `attn_mask` has these merged into one axis.
        extra: Number of keys appended to the m given ones; every query sees them.
    """
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.view(*heads, *attn_mask.shape[1:])
    if key_padding_mask is not None and key_padding_mask.ndim == 2:
        key_padding_mask = key_padding_mask[:, None, None, :]
    given = [mask for mask in (attn_mask, key_padding_mask) if mask is not None]
    if not given:
        return None
    mask = given[0] if len(given) == 1 else _both(*given)
    mask = ~mask if mask.dtype == torch.bool else mask
    return functional.pad(mask, (0, extra), value=mask.dtype == torch.bool) if extra else mask


def _both(a: Tensor, b: Tensor) -> Tensor:
    """Join two masks: a key is hidden if either hides it, and additive parts are summed."""
    if a.dtype == b.dtype == torch.bool:
        return a | b
    if a.dtype != torch.bool and b.dtype != torch.bool:
        return a + b
    hides, adds = (a, b) if a.dtype == torch.bool else (b, a)
    return torch.where(hides, -math.inf, adds)


def shown(mask: Tensor) -> Tensor:
    """Return which keys a softscope mask shows: a boolean one as is, an additive one above half the lowest number."""
    return mask_shows(mask)


def causal(n: int, m: int, device: torch.device) -> Tensor:
    """Return the causal mask, in which query i sees the keys j ≤ i; True = attend."""
    return torch.ones(n, m, dtype=torch.bool, device=device).tril()


def checked(mask: Tensor | None, name: str, shapes: tuple[tuple[int, ...], ...], axes: str) -> None:
    """Refuse a mask whose dtype or shape the module does not take."""
    if mask is None:
        return
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean (True = hidden) or additive floats, but its dtype is {mask.dtype}; convert it"
        )
    if tuple(mask.shape) not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{name} must be {axes} = {wanted}, but has shape {tuple(mask.shape)}; reshape or cut it")
