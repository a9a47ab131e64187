"""The quick ways for NumPy arrays: plain arrays, one temperature, the last axis; None if the full path is needed.

On ten numbers, the checks for everything else cost twenty times the computation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softscope import _engine, _threads
from softscope._arguments.checks import LARGEST, plain_number
from softscope._backends.engine.kernels import RANGES, REDUCTIONS, Array

# The engine's number of each dtype in native byte order, and the temperatures that it takes.
_DTYPES = {np.dtype(np.float32): (2, *RANGES[2]), np.dtype(np.float64): (3, *RANGES[3])}
_INT64 = np.dtype(np.int64)
_AT = {"softmax": "softmax_at", "log_softmax": "log_softmax_at", "logsumexp": "logsumexp_at"}


def _rows(x: Array, axis: int, temperature: float) -> tuple[int, int, int] | None:
    """Describe x to the engine as contiguous rows: how many, their length and dtype."""
    dtype, low, high = _DTYPES.get(x.dtype, (0, math.inf, 0.0))
    if not low <= temperature <= high or not x.size or axis not in (-1, x.ndim - 1) or not x.ndim:
        return None
    flags = x.flags
    if not flags.c_contiguous or not flags.aligned:
        return None
    n = x.shape[-1]
    return x.size // n, n, dtype


def plain(name: str, x: Any, temperature: Any, axis: int, out: Array | None = None, alpha: Any = 1.0) -> Array | None:
    """Compute a map or logsumexp of x; `out` must have been checked."""
    t, alpha = plain_number(temperature), plain_number(alpha)
    rows = _rows(x, axis, t)
    if rows is None or not 1.0 <= alpha < math.inf:
        return None
    if name == "entmax" and alpha == 1.0:
        name = "softmax"
    if out is None:
        out = np.empty_like(x) if name != "logsumexp" else np.empty(x.shape[:-1], x.dtype)
    elif not (out.flags.c_contiguous and out.flags.aligned):
        return None
    if name == "entmax":
        _engine.entmax_at(x, out, rows, t, alpha, _threads.count)
    else:
        getattr(_engine, _AT[name])(x, out, rows, t, _threads.count)
    return out


def plain_state(x: Any, temperature: Any, axis: int) -> tuple[Array, float] | None:
    """Compute each row's state in one array (…, 7), and return it with T as a float."""
    t = plain_number(temperature)
    rows = _rows(x, axis, t)
    if rows is None:
        return None
    out = np.empty((*x.shape[:-1], 7))
    _engine.state_at(x, out, rows, t, _threads.count)
    return out, t


def plain_product(p: Any, v: Any, alpha: Any, temperature: Any, axis: int) -> Array | None:
    """Compute J·v/T for one alpha up to 2."""
    t, a = plain_number(temperature), plain_number(alpha)
    rows = _rows(p, axis, t)
    if rows is None or type(v) is not np.ndarray or v.dtype is not p.dtype or v.shape != p.shape or not 1.0 <= a <= 2.0:
        return None
    if not v.flags.c_contiguous or not v.flags.aligned:
        return None
    out = np.empty_like(p)
    _engine.jacobian_product_at(p, v, out, rows, t, a, _threads.count)
    return out


def plain_cross_entropy(
    x: Any, targets: Any, temperature: Any, smoothing: Any, ignored: Any, reduction: Any
) -> Array | None:
    """Compute the losses, or their sum or mean, of classes on the last axis."""
    t, epsilon = plain_number(temperature), plain_number(smoothing)
    rows = _rows(x, -1, t)
    if rows is None or type(targets) is not np.ndarray or targets.dtype is not _INT64 or not 0.0 <= epsilon <= 1.0:
        return None
    flags = targets.flags
    if targets.shape != x.shape[:-1] or not flags.c_contiguous or not flags.aligned or type(reduction) is not str:
        return None
    if reduction not in REDUCTIONS or type(ignored) is not int or not -LARGEST <= ignored <= LARGEST:
        return None
    out = np.empty(targets.shape) if reduction == "none" else np.empty((), x.dtype)
    loss = ignored, epsilon, REDUCTIONS[reduction]
    if not _engine.cross_entropy_at(x, targets, rows, loss, t, 0, out, 0, _threads.count):
        return None  # the full path finds the target that is no class, and the words for it
    return out[()] if out.dtype is x.dtype else out.astype(x.dtype)[()]
