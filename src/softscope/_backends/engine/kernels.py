"""The bridge to the engine: NumPy rows in, NumPy rows out, or None where the definition must take over."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softscope import _engine, _threads

Array = np.ndarray[Any, Any]

# The temperatures at which neither 1/T nor the product with it leaves the dtype's range.
_TEMPERATURES = {8: (1e-290, 1e290), 4: (1e-30, 1e30), 2: (1e-30, 1e30)}
_PLAIN = {np.dtype(np.float32): _TEMPERATURES[4], np.dtype(np.float64): _TEMPERATURES[8]}  # in native byte order


def plain(name: str, x: Any, temperature: Any, out: Array | None = None, alpha: Any = 1.0) -> Array | None:
    """Take the fast path for the common case: a float32 or float64 NumPy array, one temperature, the last axis.

    If the function takes an alpha, it must be a single number, too.

    On ten numbers, the checks for everything else cost twenty times the computation.
    """
    if type(x) is not np.ndarray or type(temperature) is not float or not x.size:
        return None
    limits = _PLAIN.get(x.dtype)
    if limits is None or type(alpha) is not float or not 1.0 <= alpha < math.inf:
        return None
    flags = x.flags
    if not (limits[0] <= temperature <= limits[1] and x.ndim and flags.aligned):
        return None
    if not flags.c_contiguous and any(stride % x.itemsize for stride in x.strides):
        return None
    if out is None:
        out = np.empty_like(x) if name != "logsumexp" else np.empty(x.shape[:-1], x.dtype)
    elif not (out.flags.aligned and all(stride % out.itemsize == 0 for stride in out.strides)):
        return None
    if name != "entmax":
        getattr(_engine, name)(x, out, temperature, False, _threads.count)
    elif alpha == 1.0:
        _engine.softmax(x, out, temperature, False, _threads.count)
    else:
        _engine.entmax(x, out, np.array((temperature, alpha)), False, _threads.count)
    return out


def temperatures(x: Array, temperature: Any) -> Any:
    """Return the temperature, or one per row; None if any lies outside the engine's range."""
    low, high = _TEMPERATURES[x.dtype.itemsize]
    if isinstance(temperature, float):
        return temperature if low <= temperature <= high else None
    t = np.broadcast_to(temperature[..., 0], x.shape[:-1])
    return t if bool(((t >= low) & (t <= high)).all()) else None


def bits(x: Array) -> Array:
    """View x as the engine takes it: 16-bit floats as integers with the same bits, as NumPy cannot export bfloat16."""
    return x.view(np.uint16) if x.dtype.itemsize == 2 else x


def offers(itemsize: int, temperature: float) -> bool:
    """Tell whether the engine meets its error bounds for entries of this size at this temperature."""
    low, high = _TEMPERATURES[itemsize]
    return low <= temperature <= high


def brain(x: Array) -> bool:
    """Tell whether x holds bfloat16, either in a dtype of that name or, from tensors, as bits in integers."""
    return x.dtype.itemsize == 2 and x.dtype.name != "float16"


def run(name: str, x: Array, temperature: Any, out: Array, threads: int = 0, alpha: Any = None) -> bool:
    """Let the engine fill `out`; return False if it cannot. `threads` 0 means the set number."""
    t = temperatures(x, temperature)
    if t is not None and alpha is not None:
        t = _with_alpha(x, t, alpha)
    if t is None or x.size == 0:
        return False
    result = out if name == "state" else bits(out)
    getattr(_engine, name)(bits(x), result, t, brain(x), threads or _threads.count)
    return True


def steep(alpha: Any) -> bool:
    """Tell whether alpha is above 2 in any row; there s = p^(2−α) may leave the range of float64."""
    return alpha > 2.0 if isinstance(alpha, float) else bool((alpha > 2.0).any())


def _with_alpha(x: Array, temperature: Any, alpha: Any) -> Array:
    """Pack T and alpha into one array: (2,) if both are numbers, else (…, 2)."""
    if isinstance(temperature, float) and isinstance(alpha, float):
        return np.array((temperature, alpha))
    numbers = np.empty((*x.shape[:-1], 2))
    numbers[..., 0] = temperature
    numbers[..., 1] = alpha if isinstance(alpha, float) else alpha[..., 0]
    return numbers


def jacobian_product(p: Array, v: Array, alpha: Any, temperature: Any, out: Array, threads: int = 0) -> bool:
    """Let the engine fill `out`, which may be p or v, with J·v/T; return False if it cannot, as for alpha above 2."""
    t = temperatures(p, temperature)
    if t is None or p.size == 0 or steep(alpha):
        return False
    numbers = _with_alpha(p, t, alpha)
    _engine.jacobian_product(bits(p), bits(v), bits(out), numbers, brain(p), threads or _threads.count)
    return True


def log_softmax_backward(y: Array, g: Array, temperature: Any, out: Array, threads: int = 0) -> bool:
    """Let the engine fill `out`, which may be y or g, with (g − exp(y)·Σg)/T; return False if it cannot."""
    t = temperatures(y, temperature)
    if t is None or y.size == 0:
        return False
    _engine.log_softmax_backward(bits(y), bits(g), bits(out), t, brain(y), threads or _threads.count)
    return True


def scaled_weights(x: Array, numbers: Array, out: Array, threads: int = 0) -> bool:
    """Let the engine fill `out`, which may be x, with a·exp((x − m)/T)/z + b; return False if it cannot.

    `numbers` (…, 5) holds each row's T, m, z, a and b in float64. Where m is −inf or z is 0, the weights are 0.
    """
    if x.size == 0 or temperatures(x, numbers[..., :1]) is None:
        return False
    _engine.scaled_weights(bits(x), bits(out), numbers, brain(x), threads or _threads.count)
    return True


def native(x: Array) -> Array:
    """Return x in the machine's byte order, aligned, with strides that are multiples of the entry size."""
    x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    return x if all(stride % x.itemsize == 0 for stride in x.strides) and x.flags.aligned else x.copy()
