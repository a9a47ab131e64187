"""The short way for attention of NumPy arrays (batch, heads, n, d), (heads, n, d) or (n, d).

The short way for tensors shares how it describes the options. Both leave to the full path whatever is unusual: sinks,
scales for each head, broadcast batches, selected rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine, _threads
from softscope._arguments.checks import plain_number
from softscope._backends.engine.attention import FAR, STATE_NUMBERS, Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._engine import Heads, PlacedMask, Sizes, View

_engine.know_arrays(np.ndarray)


def plain_attention(
    q: Any, k: Any, v: Any, scale: Any, causal: Any, start: Any, window: Any, mask: Any, softcap: Any, statistics: Any
) -> tuple[Array | None, Array | None] | None:
    """Compute the output and, if requested, every row's numbers (…, 8). None if the full path is needed."""
    heads = _engine.array_heads_of(q, k, v) if type(statistics) is bool else None
    return _attended(q, heads, (scale, causal, start, window, mask, softcap), statistics)


def plain_statistics(q: Any, k: Any, *options: Any) -> Array | None:
    """Compute every row's numbers without the output."""
    found = _attended(q, _engine.array_queries_of(q, k), options, True)
    return None if found is None else found[1]


def _attended(
    q: Any, heads: Heads | None, options: tuple[Any, ...], statistics: bool
) -> tuple[Array | None, Array | None] | None:
    view = None if heads is None else view_of(q, heads[3], _engine.array_mask_of, *options)
    if heads is None or view is None:
        return None
    placed_q, placed_k, placed_v, sizes, dtype = heads
    rows, dv = q.shape[:-1], sizes[6]
    out = np.empty((*rows, dv), q.dtype) if dv else None
    state = np.empty((*rows, STATE_NUMBERS)) if statistics else None
    _engine.attention_at(
        placed_q, placed_k, placed_v, 0 if out is None else out, 0 if state is None else state, sizes, view,
        statistics, dtype, _threads.count,
    )  # fmt: skip
    return out, state


def view_of(
    q: Any,
    sizes: Sizes,
    place: Callable[[Any, Sizes], PlacedMask | None],
    scale: Any,
    causal: Any,
    start: Any,
    window: Any,
    mask: Any,
    softcap: Any,
) -> View | None:
    """Return how queries see keys, as the engine takes it; None if an option is unusual. `place` finds the mask."""
    factor = 1.0 / math.sqrt(sizes[5]) if scale is None else plain_number(scale)
    cap = 0.0 if softcap is None else plain_number(softcap)
    if not 0.0 < factor < math.inf or not (cap > 0.0 or softcap is None) or cap == math.inf:
        return None
    if type(causal) is not bool or type(start) is not int or not -FAR < start < FAR:
        return None
    left, right = FAR, 0 if causal else FAR
    if window is not None:
        if type(window) is not tuple or len(window) != 2 or not all(map(_is_side, window)):
            return None
        left = FAR if window[0] is None else window[0]
        right = right if window[1] is None else min(window[1], right)
    if mask is None:
        return factor, cap, start, left, right, None
    placed = place(mask, sizes)
    if placed is None or mask.ndim > max(q.ndim, 3):  # no batch, but a mask for one
        return None
    return factor, cap, start, left, right, placed


def _is_side(side: Any) -> bool:
    return side is None or (type(side) is int and 0 <= side < FAR)
