"""The short way for attention of four-dimensional CPU tensors without mask, window, cap, sink and gradient.

Generating token by token calls attention for microseconds of work; checking and describing every option takes longer.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softscope import _engine
from softscope._backends.torch.engine_memory import DTYPES, flows, reachable, threads

FAR = 1 << 60


def plain_attention(q: Any, k: Any, v: Any, scale: Any, causal: Any, start: Any) -> Tensor | None:
    """Compute the output; None if the full path is needed, which also finds the words for what is wrong."""
    if not (reachable(q) and reachable(k) and reachable(v)) or type(causal) is not bool or type(start) is not int:
        return None
    if not q.dtype is k.dtype is v.dtype or q.dtype not in DTYPES or not q.ndim == k.ndim == v.ndim == 4:
        return None
    batch, heads, n, d = q.shape
    batches, kv_heads, m, width = k.shape
    if (batches, width) != (batch, d) or v.shape[:3] != k.shape[:3] or not kv_heads or heads % kv_heads:
        return None
    if not (q.numel() and v.numel() and k.numel()) or abs(start) >= FAR or flows(q) or flows(k) or flows(v):
        return None
    if scale is None:
        scale = 1.0 / math.sqrt(d)
    elif type(scale) is not float or not 0.0 < scale < math.inf:
        return None
    strides = [x.stride() for x in (q, k, v)]
    if not strides[0][3] == strides[1][3] == strides[2][3] == 1 or torch.is_autocast_enabled("cpu"):
        return None
    out = q.new_empty((batch, heads, n, v.shape[3]))
    _engine.attention_at(
        (q.data_ptr(), *strides[0][:3]), (k.data_ptr(), *strides[1][:3]), (v.data_ptr(), *strides[2][:3]),
        (out.data_ptr(), *out.stride()[:3]), (batch, heads, kv_heads, n, m, d, v.shape[3]), scale, start, causal,
        DTYPES[q.dtype], threads(),
    )  # fmt: skip
    return out
