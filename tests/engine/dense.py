"""Attention in float64 with every weight explicit, in plain NumPy: the reference for the kernels."""

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Wanted(NamedTuple):
    output: Array
    weights: Array
    logits: Array  # −inf where not visible
    scores: Array


def attention(
    q: Array, k: Array, v: Array, *, scale: Any = None, causal: bool = False, query_start: int = 0, window: Any = None,
    mask: Array | None = None, softcap: float | None = None, sink: Any = None,
) -> Wanted:  # fmt: skip
    """Attention over q (…, heads, n, d), k (…, kv_heads, m, d) and v (…, kv_heads, m, dv)."""
    hidden_at = None if mask is None or mask.dtype == bool else float(np.finfo(mask.dtype).min) / 2
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    heads, n, m = q.shape[-3], q.shape[-2], k.shape[-2]
    k, v = (np.repeat(x, heads // x.shape[-3], axis=-3) for x in (k, v))
    scales = np.broadcast_to(1 / np.sqrt(q.shape[-1]) if scale is None else scale, heads)[:, None, None]
    scores = scales * (q @ np.swapaxes(k, -1, -2))
    logits = scores if softcap is None else softcap * np.tanh(scores / softcap)
    offset = np.arange(m) - (query_start + np.arange(n))[:, None]
    visible = np.ones(logits.shape, bool)
    left, right = window or (None, None)
    if causal:
        visible = visible & (offset <= 0)
    if left is not None:
        visible = visible & (offset >= -left)
    if right is not None:
        visible = visible & (offset <= right)
    if mask is not None and mask.dtype == bool:
        visible = visible & mask
    elif mask is not None:
        visible = visible & (mask.astype(np.float64) > hidden_at)
        logits = logits + np.where(visible, np.broadcast_to(mask.astype(np.float64), logits.shape), 0.0)
    logits = np.where(visible, logits, -np.inf)
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        column = np.broadcast_to(sink, heads)[:, None, None]
        top = np.maximum(top, column)
    top = np.where(np.isinf(top), 0.0, top)
    e = np.exp(logits - top)
    total = e.sum(axis=-1, keepdims=True) + (0.0 if sink is None else np.exp(column - top))
    weights = e / np.where(total == 0.0, 1.0, total)
    return Wanted(weights @ v, weights, logits, scores)


def readings(logits: Array) -> dict[str, Array]:
    """What `Partition` reports for every row, computed from the weights themselves."""
    count = (logits > -np.inf).sum(axis=-1)
    top = logits.max(axis=-1, keepdims=True)
    d = logits - np.where(np.isinf(top), 0.0, top)
    e = np.exp(d)
    z = e.sum(axis=-1, keepdims=True)
    p = e / np.where(z == 0.0, 1.0, z)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=-1)
        d = np.where(p > 0, d, 0.0)
        mean = (p * d).sum(axis=-1, keepdims=True)
        # Near one-hot, the peak's own share would cancel in 1 − Σp².
        first = np.arange(p.shape[-1]) == p.argmax(axis=-1)[..., None]
        rest = np.where(first, 0.0, p).sum(axis=-1)
        others = np.where(first, 0.0, p * (1.0 - p)).sum(axis=-1)
        return {
            "count": count,
            "lse": np.where(count > 0, np.log(z[..., 0]) + top[..., 0], -np.inf),
            "entropy": entropy,
            "peak": p.max(axis=-1),
            "collision": (p * p).sum(axis=-1),
            "variance": (p * (d - mean) ** 2).sum(axis=-1),
            "jacobian_trace": p.max(axis=-1) * rest + others,
        }
