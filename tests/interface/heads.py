"""Small attention problems, with attention written out for them: one query at a time, key by key."""

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.default_rng(77)
BATCH, HEADS, KV_HEADS, N, M, D, DV = 2, 4, 2, 3, 6, 5, 2
Q = _random.normal(size=(BATCH, HEADS, N, D))
K = _random.normal(size=(BATCH, KV_HEADS, M, D))
V = _random.normal(size=(BATCH, KV_HEADS, M, DV))
GRAD = _random.normal(size=(BATCH, HEADS, N, DV))
SHOWN = _random.random((BATCH, HEADS, N, M)) < 0.7
SHOWN[..., 0] = True
BIAS = _random.normal(size=(BATCH, HEADS, N, M))
SINK = _random.normal(size=HEADS)
SCALE = np.array([0.3, 1.0, 0.1, 2.0])

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 1.0},
    "scale per head": {"scale": SCALE},
    "causal": {"causal": True},
    "causal, later": {"causal": True, "query_start": 3},
    "causal, earlier": {"causal": True, "query_start": -1},
    "window": {"window": (1, 1), "query_start": 1},
    "window, open": {"window": (None, 2)},
    "window, causal": {"window": (1, 3), "causal": True, "query_start": 2},
    "boolean mask": {"mask": SHOWN},
    "shared mask": {"mask": SHOWN[0, 0]},
    "additive mask": {"mask": BIAS},
    "additive mask with holes": {"mask": np.where(SHOWN, BIAS, -np.inf)},
    "soft cap": {"softcap": 0.8},
    "sink": {"sink": 0.0},
    "sink per head": {"sink": SINK},
    "all at once": {
        "scale": SCALE, "causal": True, "query_start": 3, "window": (3, None), "softcap": 1.5, "sink": SINK,
        "mask": np.where(SHOWN, BIAS, -np.inf),
    },
}  # fmt: skip


def made(options: dict[str, Any], make: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """The options, with their arrays converted by `make`."""
    return {name: make(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}


def dense(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, *, scale: Any = None, causal: bool = False, query_start: int = 0,
    window: Any = None, mask: Any = None, softcap: Any = None, sink: Any = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Output, weights, scores and visibility from the documented formulas, for (batch, heads, n, d)."""
    batch, heads, n, d = q.shape
    m, group = k.shape[-2], heads // k.shape[1]
    scales = np.broadcast_to(1 / np.sqrt(d) if scale is None else scale, heads)
    add = np.zeros((batch, heads, n, m)) if mask is None else np.broadcast_to(mask, (batch, heads, n, m))
    output, p = np.zeros((batch, heads, n, v.shape[-1])), np.zeros((batch, heads, n, m))
    scores, logits = np.zeros(p.shape), np.full(p.shape, -np.inf)
    for b, h, i in np.ndindex(batch, heads, n):
        for j in range(m):
            s = scores[b, h, i, j] = scales[h] * (q[b, h, i] @ k[b, h // group, j])
            offset = j - (query_start + i)
            left, right = window or (None, None)
            if causal and offset > 0:
                continue
            if (left is not None and offset < -left) or (right is not None and offset > right):
                continue
            capped = s if softcap is None else softcap * np.tanh(s / softcap)
            if add.dtype == bool:
                logits[b, h, i, j] = capped if add[b, h, i, j] else -np.inf
            else:
                logits[b, h, i, j] = capped + add[b, h, i, j]
        e = np.exp(logits[b, h, i])
        total = e.sum() + (0.0 if sink is None else np.exp(np.broadcast_to(sink, heads)[h]))
        if total > 0.0:
            p[b, h, i] = e / total
        output[b, h, i] = p[b, h, i] @ v[b, h // group]
    return {"output": output, "weights": p, "scores": scores, "logits": logits, "visible": logits > -np.inf}
