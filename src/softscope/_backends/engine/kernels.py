"""The bridge to the engine: NumPy rows in, NumPy rows out, or None where the definition must take over."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope import _engine, _threads

Array = np.ndarray[Any, Any]

REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}  # of losses, as the engine numbers them

# The temperatures at which neither 1/T nor the product with it leaves the dtype's range.
TEMPERATURES = {8: (1e-290, 1e290), 4: (1e-30, 1e30), 2: (1e-30, 1e30)}
RANGES = tuple(TEMPERATURES[size] for size in (2, 2, 4, 8))  # of the dtypes, as the engine numbers them


def temperatures(x: Array, temperature: Any) -> Any:
    """Return the temperature, or one per row; None if any lies outside the engine's range."""
    low, high = TEMPERATURES[x.dtype.itemsize]
    if isinstance(temperature, float):
        return temperature if low <= temperature <= high else None
    t = np.broadcast_to(temperature[..., 0], x.shape[:-1])
    return t if bool(((t >= low) & (t <= high)).all()) else None


def bits(x: Array) -> Array:
    """View x as the engine takes it: 16-bit floats as integers with the same bits, as NumPy cannot export bfloat16."""
    return x.view(np.uint16) if x.dtype.itemsize == 2 else x


def offers(itemsize: int, temperature: float) -> bool:
    """Tell whether the engine meets its error bounds for entries of this size at this temperature."""
    low, high = TEMPERATURES[itemsize]
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


def cross_entropy(x: Array, targets: Array, temperature: Any, label_smoothing: float, losses: Array) -> bool:
    """Let the engine fill `losses` in float64; every target must be a class. Return False if the engine cannot."""
    t = temperatures(x, temperature)
    if t is None or x.size == 0:
        return False
    n, dtype = x.shape[-1], {"float16": 0, "float32": 2, "float64": 3}.get(x.dtype.name, 1)
    one, each = (t, 0) if isinstance(t, float) else (1.0, np.ascontiguousarray(t, np.float64))
    loss = -1, label_smoothing, REDUCTIONS["none"]
    rows = np.ascontiguousarray(bits(x))
    return _engine.cross_entropy_at(
        rows, np.ascontiguousarray(targets), (x.size // n, n, dtype), loss, one, each, losses, 0, _threads.count
    )


def native(x: Array) -> Array:
    """Return x in the machine's byte order, aligned, with strides that are multiples of the entry size."""
    x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    return x if all(stride % x.itemsize == 0 for stride in x.strides) and x.flags.aligned else x.copy()
