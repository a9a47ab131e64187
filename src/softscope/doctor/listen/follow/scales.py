"""q and k as they were before the model multiplied them by a number: 1/√d may be part of q, as in Whisper."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from softscope.doctor.listen.follow.products import Product
from softscope.doctor.listen.follow.traces import trace_of


def factor_of(x: Any) -> float:
    """The number this tensor was multiplied by; 1 if none is known."""
    trace = trace_of(x)
    plain = trace is not None and (trace.origin is None or (isinstance(trace.origin, Product) and trace.origin.linear))
    known = trace.factor if trace is not None and plain else None
    return known if known and math.isfinite(known) else 1.0


def before_scaling(q: Tensor, k: Tensor, scale: Any, query: Any, key: Any) -> tuple[Tensor, Tensor, Any]:
    """q, k and the scale between them, given as passed, if `query` and `key` are the tensors that the model passed.

    The logits are the same. The scale is then what was forgotten or not, wherever the model applies it.
    """
    factors = factor_of(query), factor_of(key)
    q, k = (x if factor == 1.0 else x / factor for x, factor in zip((q, k), factors, strict=True))
    return q, k, scale * factors[0] * factors[1]
