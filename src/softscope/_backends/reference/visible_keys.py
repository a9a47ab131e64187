"""Which keys a query sees, and what hides one: said once, for every backend and for the doctor.

All functions work on NumPy arrays and torch tensors alike.
"""

from __future__ import annotations

from typing import Any

# The lowest finite number of each dtype that a mask may have.
LOWEST = {
    "float16": -65504.0,
    "bfloat16": -3.3895313892515355e38,
    "float32": -3.4028234663852886e38,
    "float64": -1.7976931348623157e308,
}

# An explicit softmax shows logits with the mask already added. At or below this, a logit is a hidden key: masks of
# −1e6, −1e9 and finfo.min are all in use, and logits of that size are not.
HIDDEN_LOGIT = -5e5
# So is a logit around −10000, the constant of BERT, GPT-2 and many tutorials, in a row that has more to offer: at that
# distance a weight is 0 in every dtype.
TEN_THOUSAND, AROUND = -1e4, 1e3


def offsets_allow(offset: Any, left: int | None, right: int | None) -> Any:
    """Which keys a query may see, from offset = j − position: −left ≤ offset ≤ right, None unlimited.

    Causal attention is right = 0. None if all keys are seen.
    """
    if left is not None and right is not None:
        return (offset >= -left) & (offset <= right)
    if left is not None:
        return offset >= -left
    return None if right is None else offset <= right


def mask_hides(mask: Any) -> Any:
    """Where an additive mask hides the key: at −inf, and at or below half the lowest number of its dtype."""
    return mask <= LOWEST[_dtype(mask)] / 2


def mask_shows(mask: Any) -> Any:
    """Where a boolean or an additive mask shows the key."""
    return mask if _dtype(mask) == "bool" else ~mask_hides(mask)


def logit_is_hidden(logits: Any) -> Any:
    """Where a mask was added to logits (…, keys): −inf, finfo.min, −1e9, and −10000 beside larger ones.

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
