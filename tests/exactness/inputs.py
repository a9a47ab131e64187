"""The rows on which the bounds are checked: named classes of input, exact in the requested dtype."""

import functools
import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

DTYPES = ("float16", "bfloat16", "float32", "float64")
BACKENDS = ("numpy", "torch")
TEMPERATURES = (0.01, 0.5, 1.0, 3.0, 100.0)


class Case(NamedTuple):
    """A named row whose values are exact in the dtype."""

    name: str
    row: tuple[float, ...]


class Limits(NamedTuple):
    """The smallest normal and the largest finite number of a dtype."""

    floor: float
    largest: float


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of that name; for bfloat16, that of ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def limits(dtype: str) -> Limits:
    """The range where a relative error means something."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    return Limits(float(info.smallest_normal), float(info.max))


def in_range(value: object, dtype: str) -> float:
    """The value, clipped to the largest number of the dtype: an ulp of infinity is no tolerance."""
    largest = limits(dtype).largest
    return max(-largest, min(largest, float(value)))


def array(values: Any, dtype: str, backend: str) -> Any:
    """The values as a NumPy array or a torch tensor."""
    a = np.asarray(values, dtype=np.float64)
    return torch.tensor(a.tolist(), dtype=getattr(torch, dtype)) if backend == "torch" else a.astype(numpy_dtype(dtype))


def floats(result: Any) -> list[Any]:
    """A result of either backend as (nested) Python floats, exactly."""
    if isinstance(result, torch.Tensor):
        return result.detach().double().tolist()
    return np.asarray(result).astype(np.float64).tolist()


@functools.cache
def cases(dtype: str) -> tuple[Case, ...]:
    """Every class of input, rounded to the dtype; those it cannot hold are omitted."""
    kept = []
    for name, values in (*_random(), *_made(dtype)):
        with np.errstate(over="ignore"):
            row = np.asarray(values, dtype=np.float64).astype(numpy_dtype(dtype)).astype(np.float64)
        if np.isfinite(row).sum() == np.isfinite(values).sum():
            kept.append(Case(name, tuple(row.tolist())))
    return tuple(kept)


def _random() -> list[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(20)
    rows = [(f"normals, scale {s:g}", s * rng.normal(size=17)) for s in (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)]
    rows += [(f"shifted by {s:g}", s + 5 * rng.normal(size=9)) for s in (1e4, -1e4, 1e8, -1e15, 1e16, 1e30, -1e30)]
    rows += [(f"length {n}", 3 * rng.normal(size=n)) for n in (1, 2, 3)]
    rows += [("1000 normals", 4 * rng.normal(size=1000)), ("200 alike", np.full(200, -2.5))]
    rows += [("100 spread evenly", np.linspace(-90, 0, 100))]
    gaps = (8.0, 12.0, -math.log(1e-8), 25.0, 33.0, 40.0, 80.0, 700.0)
    rows += [(f"near one-hot, gap {g:.3g}", np.append(0.5 - g - rng.exponential(size=5), 0.5)) for g in gaps]
    rows += [("1e-8 from one-hot, two entries", np.array([0.0, math.log(1e-8)]))]
    rows += [("1e-8 from one-hot, 40 entries", np.append(0.0, math.log(1e-8 / 39) + 0.1 * rng.normal(size=39)))]
    hidden = 2 * rng.normal(size=12)
    hidden[[0, 3, 4, 11]] = -np.inf
    rows += [("some -inf", hidden), ("one that is not -inf", np.array([-np.inf, 1.5, -np.inf]))]
    return rows


def _made(dtype: str) -> list[tuple[str, Any]]:
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny, big, normal = float(info.smallest_subnormal), float(info.max), float(info.smallest_normal)
    return [
        ("zero", [0.0]),
        ("two ties at the maximum", [3.0, 3.0, 1.0, -2.0]),
        ("nine ties and a far one", [1.25] * 9 + [-30.0]),
        ("all alike", [0.7] * 6),
        ("nearly tied", [1.0, 1.0 - float(info.eps), 1.0 - 4 * float(info.eps), 0.5]),
        ("denormals", [tiny, 3 * tiny, 0.0, -2 * tiny, normal / 2]),
        ("denormal and ordinary", [tiny, -1.0, 1.0, normal]),
        ("huge of both signs", [big, -big, 0.0]),
        ("huge and tied", [big, big, big / 2]),
        ("huge and close", [big, big * (1 - float(info.eps)), -big / 4]),
        ("huge and negative", [-big, -big / 2, -big]),
        ("huge and 1", [1e308 if dtype == "float64" else big / 8, 1.0, -1.0]),
        ("huge and -inf", [-np.inf, big, -big]),
    ]
