"""The bridge to the engine: NumPy rows in, NumPy rows out, or None where the definition has to do it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from softscope import _engine

Array = np.ndarray[Any, Any]

# Where 1/T, or the product with it, would leave the range that a dtype computes in.
_TEMPERATURES = {8: (1e-290, 1e290), 4: (1e-30, 1e30), 2: (1e-30, 1e30)}


# In float64 a logarithm within 2 ulp needs more than float64 where the maximum cancels log z: the definition has it,
# in long double; the engine has not, yet.
_EXACT_ENOUGH_IN_FLOAT64 = ("softmax",)


def _thread_count() -> int:
    """SOFTSCOPE_NUM_THREADS, or as many as there are cores for this process."""
    wanted = os.environ.get("SOFTSCOPE_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = _thread_count()


def plain(name: str, x: Any, temperature: Any, out: Array | None = None) -> Array | None:
    """The common case without ceremony: a NumPy array of float32 or float64, one temperature, the last axis.

    On ten numbers the checks for everything else cost twenty times the work.
    """
    if type(x) is not np.ndarray or type(temperature) is not float or x.dtype.char not in "fd" or not x.size:
        return None
    if x.itemsize == 8 and name not in _EXACT_ENOUGH_IN_FLOAT64:
        return None
    low, high = _TEMPERATURES[x.itemsize]
    if not (low <= temperature <= high and x.ndim and x.dtype.isnative and x.flags.aligned):
        return None
    if any(stride % x.itemsize for stride in x.strides):
        return None
    if out is None:
        out = np.empty_like(x) if name != "logsumexp" else np.empty(x.shape[:-1], x.dtype)
    elif not (out.flags.aligned and all(stride % out.itemsize == 0 for stride in out.strides)):
        return None
    getattr(_engine, name)(x, out, temperature, False, THREADS)
    return out


def temperatures(x: Array, temperature: Any) -> Any:
    """The temperature, or one for each row; None if one is outside of the engine's range."""
    low, high = _TEMPERATURES[x.dtype.itemsize]
    if isinstance(temperature, float):
        return temperature if low <= temperature <= high else None
    t = np.broadcast_to(temperature[..., 0], x.shape[:-1])
    return t if bool(((t >= low) & (t <= high)).all()) else None


def bits(x: Array) -> Array:
    """x as the engine takes it: 16-bit floats as the integers that hold them, for NumPy cannot export bfloat16."""
    return x.view(np.uint16) if x.dtype.itemsize == 2 else x


def run(name: str, x: Array, temperature: Any, out: Array) -> bool:
    """Let the engine fill `out`; False if it cannot."""
    t = temperatures(x, temperature)
    if t is None or x.size == 0 or (x.itemsize == 8 and name not in _EXACT_ENOUGH_IN_FLOAT64):
        return False
    result = out if name == "state" else bits(out)
    getattr(_engine, name)(bits(x), result, t, x.dtype.itemsize == 2 and x.dtype.name == "bfloat16", THREADS)
    return True


def _brain(x: Array) -> bool:
    return x.dtype.itemsize == 2 and x.dtype.name == "bfloat16"


def jacobian_product(p: Array, v: Array, alpha: Any, temperature: Any, out: Array) -> bool:
    """Let the engine fill `out`, which may be p or v, with J·v/T; False if it cannot."""
    t = temperatures(p, temperature)
    if t is None or p.size == 0:
        return False
    numbers = np.empty((*p.shape[:-1], 2)) if np.ndim(t) or np.ndim(alpha) else np.empty(2)
    numbers[..., 0] = t
    numbers[..., 1] = alpha if isinstance(alpha, float) else np.asarray(alpha)[..., 0]
    numbers = np.broadcast_to(numbers, (*p.shape[:-1], 2))
    _engine.jacobian_product(bits(p), bits(v), bits(out), numbers, _brain(p), THREADS)
    return True


def log_softmax_backward(y: Array, g: Array, temperature: Any, out: Array) -> bool:
    """Let the engine fill `out`, which may be y or g, with (g − exp(y)·Σg)/T; False if it cannot."""
    t = temperatures(y, temperature)
    if t is None or y.size == 0:
        return False
    _engine.log_softmax_backward(bits(y), bits(g), bits(out), t, _brain(y), THREADS)
    return True


def scaled_weights(x: Array, numbers: Array, out: Array) -> bool:
    """Let the engine fill `out`, which may be x, with a·exp((x − m)/T)/z + b; False if it cannot.

    numbers (…, 5) holds T, m, z, a and b of each row, in float64. Where m is −inf or z is 0 the weights are 0.
    """
    if x.size == 0 or temperatures(x, numbers[..., :1]) is None:
        return False
    _engine.scaled_weights(bits(x), bits(out), numbers, _brain(x), THREADS)
    return True


def native(x: Array) -> Array:
    """x in the machine's byte order, and in memory that the engine can walk in whole entries."""
    x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    return x if all(stride % x.itemsize == 0 for stride in x.strides) and x.flags.aligned else x.copy()
