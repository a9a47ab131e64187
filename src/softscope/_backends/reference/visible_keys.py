"""Which keys a query sees, and what hides a key: defined once, for every backend and for the doctor.

All functions work on both NumPy arrays and torch tensors.
"""

from __future__ import annotations

from typing import Any

# The lowest finite number of each dtype a mask may have.
LOWEST = {
    "float16": -65504.0,
    "bfloat16": -3.3895313892515355e38,
    "float32": -3.4028234663852886e38,
    "float64": -1.7976931348623157e308,
}

# A model that calls softmax itself passes logits with the mask already added. A logit at or below this value marks a
# hidden key: masks of −1e6, −1e9 and finfo.min are all in use, but logits of that size are not.
HIDDEN_LOGIT = -5e5
# A logit around −10000, the mask constant of BERT, GPT-2 and many tutorials, also marks a hidden key if its row has
# larger logits: at that distance, the weight is 0 in every dtype.
TEN_THOUSAND, AROUND = -1e4, 1e3


def offsets_allow(offset: Any, left: int | None, right: int | None) -> Any:
    """Return which keys a query may see, from offset = j − position: −left ≤ offset ≤ right; None means unlimited.

    Causal attention has right = 0. The result is None if the query sees all keys.
    """
    if left is not None and right is not None:
        return (offset >= -left) & (offset <= right)
    if left is not None:
        return offset >= -left
    return None if right is None else offset <= right


def mask_hides(mask: Any) -> Any:
    """Return where an additive mask hides the key: at −inf, and at or below half its dtype's lowest number."""
    return mask <= LOWEST[_dtype(mask)] / 2


def mask_shows(mask: Any) -> Any:
    """Return where a boolean or additive mask shows the key."""
    return mask if _dtype(mask) == "bool" else ~mask_hides(mask)


def logit_is_hidden(logits: Any) -> Any:
    """Return where logits (…, keys) carry a mask: −inf, finfo.min, −1e9, and −10000 next to larger logits.

    >>> import numpy as np
    >>> logit_is_hidden(np.array([0.5, -1e9, -9999.5])), logit_is_hidden(np.array([-9999.0, -10001.0]))
    (array([False,  True,  True]), array([False, False]))
    """
    hidden = logits <= max(HIDDEN_LOGIT, LOWEST[_dtype(logits)] / 2)
    around = abs(logits - TEN_THOUSAND) <= AROUND
    if logits.shape[-1] and bool(around.any()):
        tensor = hasattr(logits, "amax")
        highest = logits.amax(dim=-1, keepdim=True) if tensor else logits.max(axis=-1, keepdims=True)
        hidden = hidden | (around & (highest > TEN_THOUSAND + 2.0 * AROUND))
    return hidden


def _dtype(x: Any) -> str:
    return getattr(x.dtype, "name", None) or str(x.dtype).removeprefix("torch.")
