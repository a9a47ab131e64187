"""The quick ways for NumPy arrays: plain arrays, one temperature, the last axis; None if the full path is needed.

On ten numbers, the checks for everything else cost twenty times the computation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope import _engine, _threads
from softscope._arguments.checks import LARGEST, plain_number
from softscope._backends.engine.kernels import RANGES, REDUCTIONS, Array

if TYPE_CHECKING:
    from softscope._engine import RowsAt

# The temperatures that the engine takes for each dtype in native byte order, and its number of the dtype.
_RANGES = {np.dtype(np.float32): (*RANGES[2], 2), np.dtype(np.float64): (*RANGES[3], 3)}
_NONE = math.inf, 0.0, 0
_INT64 = np.dtype(np.int64)
_AT = {name: f"{name}_at" for name in ("softmax", "log_softmax", "logsumexp", "state", "entmax", "jacobian_product")}

_READINGS = "lse entropy collision peak variance jacobian_trace effective_support sharpness"
READINGS = {name: i for i, name in enumerate(_READINGS.split())}  # of states, as the engine numbers them


def _rows(x: Array, axis: int, temperature: float) -> Array | None:
    """View x with its rows on the last axis; None if the engine cannot take it as it lies."""
    low, high, _ = _RANGES.get(x.dtype, _NONE)
    if not low <= temperature <= high or not x.size or not x.ndim or not x.flags.aligned:
        return None
    return x if axis == -1 or axis == x.ndim - 1 else _moved(x, axis)


def _moved(x: Array, axis: int) -> Array | None:
    """View x with this axis as its last one; None if it has no such axis."""
    if not -x.ndim <= axis < x.ndim:
        return None
    axes = list(range(x.ndim))
    axes.append(axes.pop(axis))
    return x.transpose(axes)


def _run(name: str, arrays: tuple[Array, ...], numbers: tuple[float, ...]) -> None:
    """Let the engine fill the last array: contiguous ones by their memory, which is quicker to pass than strides."""
    for array in arrays:
        if not array.flags.c_contiguous:
            packed = numbers[0] if len(numbers) == 1 else np.array(numbers)
            getattr(_engine, name)(*arrays, packed, False, _threads.count)
            return
    x = arrays[0]
    n = x.shape[-1]
    getattr(_engine, _AT[name])(*arrays, (x.size // n, n, _RANGES[x.dtype][2]), *numbers, _threads.count)


def plain(name: str, x: Any, temperature: Any, axis: int, out: Array | None = None, alpha: Any = 1.0) -> Array | None:
    """Compute a map or logsumexp of x; `out` must have been checked."""
    t, alpha = plain_number(temperature), plain_number(alpha)
    rows = _rows(x, axis, t)
    if rows is None or not 1.0 <= alpha < math.inf or not (out is None or out.flags.aligned):
        return None
    if name == "logsumexp":
        out = np.empty(rows.shape[:-1], x.dtype)
        _run(name, (rows, out), (t,))
        return out
    if out is None:
        out = np.empty_like(x)
    results = out if rows is x else _moved(out, axis)
    assert results is not None
    if name == "entmax" and alpha != 1.0:
        _run(name, (rows, results), (t, alpha))
    else:
        _run("softmax" if name == "entmax" else name, (rows, results), (t,))
    return out


def plain_state(x: Any, temperature: Any, axis: int) -> tuple[Array, float] | None:
    """Compute each row's state in one array (…, 7), and return it with T as a float."""
    t = plain_number(temperature)
    rows = _rows(x, axis, t)
    if rows is None:
        return None
    out = np.empty((*rows.shape[:-1], 7))
    _run("state", (rows, out), (t,))
    return out, t


def packed(state: tuple[Any, ...]) -> Array:
    """Join the parts of a state into the engine's numbers (…, 7)."""
    return np.stack(np.broadcast_arrays(*state), axis=-1, dtype=np.float64)


def reading(name: str, numbers: Array, temperature: Any) -> Array:
    """Compute one reading of each state of the engine's numbers (…, 7 or 8)."""
    out = np.empty(numbers.shape[:-1])
    width = numbers.shape[-1]
    t, each = (temperature, 0) if type(temperature) is float else (1.0, _for_rows(temperature, out.shape))
    rows = numbers.size // width, width, 3
    _engine.reading_at(numbers, out, rows, READINGS[name], t, each, _threads.count)
    return out


def _for_rows(temperature: Any, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.broadcast_to(temperature, shape), np.float64)


def plain_target(name: str, wanted: Any) -> float:
    """Return the entropy, or −log of the peak, that every row is to reach; NaN if it needs a closer look."""
    target = plain_number(wanted)
    if name == "entropy":
        return target if target >= 0.0 else math.nan
    return -math.log(target) if 0.0 < target <= 1.0 else math.nan


def plain_temperature(x: Any, name: str, wanted: Any) -> Array | None:
    """Find the temperatures at which the rows have one entropy or peak."""
    target, rows = plain_target(name, wanted), _packed_rows(x)
    return None if rows is None or target != target else _searched(rows, name, target, 0)


def temperatures(x: Array, name: str, wanted: Array) -> Array:
    """Find the temperatures (…, 1) at which each row of float64 has its own entropy or peak, NaN where none does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        targets = wanted if name == "entropy" else -np.log(wanted)
    return _searched(np.ascontiguousarray(x), name, math.nan, np.ascontiguousarray(targets))


def _searched(x: Array, name: str, target: float, targets: Any) -> Array:
    out = np.empty((*x.shape[:-1], 1))
    _engine.temperature_for_at(x, out, described(x), name == "peak", target, targets, _threads.count)
    return out


def _packed_rows(x: Any) -> Array | None:
    """Return rows of plain numbers as a contiguous array."""
    rows = _rows(x, -1, 1.0)
    return rows if rows is None or rows.flags.c_contiguous else np.ascontiguousarray(rows)


def plain_rows(x: Any) -> tuple[Array, RowsAt, tuple[int, ...]] | None:
    """Return rows of plain numbers, how the engine sees them, and the shape before the last axis."""
    rows = _packed_rows(x)
    return None if rows is None else (rows, described(rows), rows.shape[:-1])


def described(x: Array) -> RowsAt:
    """Return the number of contiguous rows, their length and dtype."""
    *lead, n = x.shape
    return math.prod(lead), n, _RANGES[x.dtype][2]


def plain_product(p: Any, v: Any, alpha: Any, temperature: Any, axis: int) -> Array | None:
    """Compute J·v/T for one alpha up to 2."""
    t, a = plain_number(temperature), plain_number(alpha)
    rows = _rows(p, axis, t)
    if rows is None or type(v) is not np.ndarray or v.dtype is not p.dtype or v.shape != p.shape or not 1.0 <= a <= 2.0:
        return None
    direction = _rows(v, axis, t)
    if direction is None:
        return None
    out = np.empty_like(p)
    results = out if rows is p else _moved(out, axis)
    assert results is not None
    _run("jacobian_product", (rows, direction, results), (t, a))
    return out


def plain_cross_entropy(
    x: Any, targets: Any, temperature: Any, smoothing: Any, ignored: Any, reduction: Any
) -> Array | None:
    """Compute the losses, or their sum or mean, of classes on the last axis."""
    t, epsilon = plain_number(temperature), plain_number(smoothing)
    rows = _rows(x, -1, t)
    if rows is None or type(targets) is not np.ndarray or targets.dtype is not _INT64 or not 0.0 <= epsilon <= 1.0:
        return None
    if targets.shape != x.shape[:-1] or not targets.flags.aligned or type(reduction) is not str:
        return None
    if reduction not in REDUCTIONS or type(ignored) is not int or not -LARGEST <= ignored <= LARGEST:
        return None
    out = np.empty(targets.shape) if reduction == "none" else np.empty((), x.dtype)
    n, loss = x.shape[-1], (ignored, epsilon, REDUCTIONS[reduction])
    x, targets = np.ascontiguousarray(x), np.ascontiguousarray(targets)
    described = x.size // n, n, _RANGES[x.dtype][2]
    if not _engine.cross_entropy_at(x, targets, described, loss, t, 0, out, 0, _threads.count):
        return None  # the full path finds the target that is no class, and the words for it
    return out[()] if out.dtype is x.dtype else out.astype(x.dtype)[()]


def plain_distillation(student: Any, teacher: Any, temperature: float) -> Any:
    """Compute the mean loss of rows, as a scalar of their dtype."""
    if type(teacher) is not np.ndarray or teacher.shape != student.shape or teacher.dtype is not student.dtype:
        return None
    ours, theirs = _packed_rows(student), _packed_rows(teacher)
    return None if ours is None or theirs is None else _distilled(ours, theirs, temperature, 0)


def distillation(student: Array, teacher: Array, temperature: Any) -> Any:
    """Compute the mean loss of any rows in float64, at one temperature or at one for each, (…, 1)."""
    ours, theirs = (np.ascontiguousarray(x, np.float64) for x in (student, teacher))
    t, each = (temperature, 0) if type(temperature) is float else (1.0, _for_rows(temperature[..., 0], ours.shape[:-1]))
    return _distilled(ours, theirs, t, each)


def _distilled(student: Array, teacher: Array, temperature: float, each: Any) -> Any:
    out = np.empty((), student.dtype)
    _engine.distillation_at(student, teacher, out, described(student), temperature, each, _threads.count)
    return out[()]
