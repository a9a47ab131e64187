"""Random calls of the family, compared with the definition in a wider float.

To run it by hand, for longer and from another seed than the test (see CONTRIBUTING):

    .venv/bin/python tests/fuzz/cases.py --seconds 600 --seed 7
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import torch

import softscope as ss
from softscope._backends.reference import entmax as _entmax
from softscope._backends.reference import jacobian as _jacobian
from softscope._backends.reference import partition as _partition
from softscope._backends.reference import softmax as _softmax

Array = np.ndarray[Any, Any]

NAMES = ("softmax", "log_softmax", "logsumexp", "entmax", "partition", "jacobian_product")
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
LENGTHS = (0, 1, 2, 3, 5, 8, 13, 16, 24, 31, 33, 63, 64, 65, 100, 129, 300, 1025, 5000, 20_000, 270_000)
SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-41, 3e38, -3e38, 60_000.0, -60_000.0, 88.0, -88.0)


@dataclass
class Case:
    """One call; its repr is enough to recreate it."""

    seed: int
    name: str = ""
    x: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    v: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    axis: int = -1
    temperature: Any = field(default=1.0, repr=False)
    alpha: Any = field(default=1.5, repr=False)
    where: Array | None = field(default=None, repr=False)
    out: str = "none"
    tensor: bool = False
    layout: str = ""


def make(seed: int) -> Case:
    """The case for a seed."""
    rng = np.random.default_rng(seed)
    case = Case(seed, str(rng.choice(NAMES)))
    dtype = DTYPES[rng.integers(len(DTYPES))]
    n = int(LENGTHS[min(rng.integers(len(LENGTHS)), rng.integers(len(LENGTHS) + 2))])
    lead = [int(k) for k in rng.choice([1, 2, 3, 7, 17, 40], size=rng.integers(0, 4 if n < 300 else 2))]
    while n * int(np.prod(lead)) > 600_000 and lead:
        lead.pop()
    case.axis = int(rng.integers(-len(lead) - 1, len(lead) + 1))
    shape = list(lead)
    shape.insert(case.axis if case.axis >= 0 else case.axis + len(lead) + 1, n)
    case.x, case.layout = _laid_out(rng, _numbers(rng, shape), dtype)
    case.tensor = bool(rng.random() < 0.3)
    kept = [1 if i == case.axis % len(shape) else s for i, s in enumerate(shape)]
    if rng.random() < 0.5:
        case.temperature = float(10.0 ** rng.uniform(-2, 2)) if rng.random() < 0.8 else float(rng.choice([1e-40, 1e40]))
    elif rng.random() < 0.3:
        case.temperature = np.exp(rng.standard_normal(kept))
    case.alpha = float(rng.choice([1.0, 1.2, 1.5, 2.0, 3.0])) if rng.random() < 0.8 else rng.uniform(1, 4, kept)
    if case.name == "jacobian_product":
        case.alpha = float(rng.choice([1.0, 1.2, 1.5, 2.0, 3.0]))
        with np.errstate(all="ignore"):
            weights = np.abs(np.nan_to_num(case.x.astype(np.float64), nan=0.2, posinf=1.0, neginf=0.0)) % 1.0
        case.x, case.layout = _laid_out(rng, weights, dtype)
        case.v = rng.standard_normal(shape).astype(dtype)
    elif rng.random() < 0.3:
        mask_shape = [s if rng.random() < 0.8 else 1 for s in shape]
        case.where = rng.random(mask_shape) < rng.choice([0.1, 0.7, 1.0])
    if case.name in ("softmax", "log_softmax", "entmax"):
        case.out = str(rng.choice(["none", "new", "x", "strided"]))
    return case


def _numbers(rng: np.random.Generator, shape: list[int]) -> Array:
    kind = rng.choice(["normal", "wide", "ties", "shifted", "special"])
    x = rng.standard_normal(shape)
    if kind == "wide":
        x *= 10.0 ** rng.uniform(0, 3)
    elif kind == "ties":
        x = np.round(x)
    elif kind == "shifted":
        x += 10.0 ** rng.uniform(0, 4)
    elif kind == "special":
        x = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x)
    return x


def _laid_out(rng: np.random.Generator, x: Array, dtype: Any) -> tuple[Array, str]:
    """The numbers in some memory layout: contiguous, permuted, with gaps, backwards, one row repeated, read-only."""
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    layout = str(rng.choice(["plain", "permuted", "gaps", "backwards", "broadcast", "read-only"]))
    if layout == "permuted" and x.ndim > 1:
        order = rng.permutation(x.ndim)
        x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    elif layout == "gaps" and x.ndim:
        base = np.zeros([s * 2 for s in x.shape], x.dtype)
        view = base[tuple(slice(0, 2 * s, 2) for s in x.shape)]
        view[...] = x
        x = view
    elif layout == "backwards" and x.ndim:
        x = np.ascontiguousarray(np.flip(x))[(slice(None, None, -1),) * x.ndim]
    elif layout == "broadcast" and x.ndim and x.shape[0]:
        x = np.broadcast_to(x[:1], x.shape)
    elif layout == "read-only":
        x.flags.writeable = False
    return x, layout


def call(case: Case) -> Any:
    """Call our function."""
    x = case.x
    options: dict[str, Any] = {"axis": case.axis, "temperature": case.temperature}
    give = (lambda a: a) if not case.tensor else _tensor
    if case.name == "jacobian_product":
        return ss.jacobian_product(give(x), give(case.v), alpha=case.alpha, **_given(options, give))
    if case.name == "entmax":
        options["alpha"] = case.alpha
    if case.where is not None:
        options["where"] = case.where
    options = _given(options, give)
    if case.name in ("logsumexp", "partition"):
        return getattr(ss, case.name)(give(x), **options)
    if case.out == "x":
        x = x.copy()
        mine = give(x)
        return getattr(ss, case.name)(mine, out=mine, **options)
    if case.out == "new":
        options["out"] = give(np.empty(x.shape, x.dtype))
    elif case.out == "strided" and x.ndim:
        options["out"] = give(np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2])
    return getattr(ss, case.name)(give(x), **options)


def _given(options: dict[str, Any], give: Any) -> dict[str, Any]:
    return {name: give(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}


def _tensor(a: Array) -> torch.Tensor:
    """A tensor on the same memory if PyTorch can do that, otherwise on a copy."""
    a = a if a.flags.writeable and all(s >= 0 for s in a.strides) else a.copy()
    if a.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(a)


def _numpy(a: Any) -> Array:
    a = a.double() if isinstance(a, torch.Tensor) else a
    return np.asarray(a).astype(np.longdouble)


def check(case: Case) -> None:
    """Raise if our result is not within the bounds of the definition's, or if the input has changed."""
    before = case.x.copy()
    got = call(case)
    if case.x.tobytes() != before.tobytes():
        raise AssertionError(f"{case} changed its input")

    def rows(a: Any) -> Any:
        return np.moveaxis(np.asarray(a), case.axis, -1) if np.ndim(a) else a

    wide = rows(case.x).astype(np.float64 if case.x.dtype != np.float64 else np.longdouble)
    t = rows(case.temperature)
    visible = None if case.where is None else rows(np.broadcast_to(case.where, case.x.shape))
    u = float(ml_dtypes.finfo(case.x.dtype).eps) / 2
    with np.errstate(all="ignore"):
        if case.name == "partition":
            _check_partition(case, got, wide, t, visible)
            return
        if case.name == "entmax":
            # The definition's own root is good to a few units in float64, whatever it is given.
            want = _entmax.entmax(wide.astype(np.float64), rows(case.alpha), t, visible)
            scale, floor = np.abs(want) * 8, 8.0 if case.x.dtype != np.float64 else 64.0
        elif case.name == "jacobian_product":
            v = rows(case.v).astype(wide.dtype)
            want = _jacobian.jacobian_product(wide, v, case.alpha) / t
            scale = (16 + 4 * np.abs(np.log(np.where(wide > 0, wide, 1)))) * _sum_of(wide, v, case.alpha) / t
            floor = 0.0
        else:
            want = getattr(_softmax, case.name)(wide, t, visible)
            shown = _softmax.hidden_to_minus_inf(wide, visible)
            m = _softmax.maximum(shown)
            if case.name == "softmax":
                d = np.nan_to_num(np.abs(_softmax.distances(shown, t)), nan=0.0, posinf=0.0)
                scale, floor = want * (8 + 3.1 * d), 0.0
            else:
                top = np.abs(m / t)
                top = top if case.name == "log_softmax" else top[..., 0]
                scale, floor = 4.2 * np.maximum(np.abs(want), top), 0.0
        result = _numpy(got)
        result = result if case.name == "logsumexp" else rows(result)
        limits = ml_dtypes.finfo(case.x.dtype)
        tiny = float(limits.tiny)
        tiny = tiny if case.name == "softmax" and case.x.dtype != np.float16 else tiny * 4 * u
        near = np.abs(result - want) <= u * scale + u * floor + tiny
        same = (result == want) | (np.isnan(result) & np.isnan(want))
        large = (np.abs(want) > 0.999 * float(limits.max)) & (np.sign(result) == np.sign(want))
        bad = ~(near | same | (large & np.isinf(result)))
    if np.any(bad):
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise AssertionError(f"{case}\nof {case.x.dtype} {case.x.shape} at {at}: got {result[at]}, want {want[at]}")


def _sum_of(p: Array, v: Array, alpha: float) -> Array:
    """How large s·(v − mean) may be before the two cancel."""
    s = _jacobian.sensitivity(p, alpha)
    return np.asarray(np.abs(s) * np.abs(v).max(axis=-1, keepdims=True, initial=0.0))


def _check_partition(case: Case, got: ss.Partition, wide: Array, t: Any, visible: Array | None) -> None:
    want = _partition.state(wide, t, visible)
    rtol = 1e-5 if case.x.dtype != np.float64 else 1e-11
    spoiled = np.isnan(np.asarray(want.c))  # NaN or +inf: every reading is NaN or inf, whatever the sums
    for name in ("n", "c", "m", "r", "u", "t", "w"):
        a, b = _numpy(getattr(got.state, name)), np.asarray(getattr(want, name)).astype(np.longdouble)
        if name not in ("n", "c", "m"):
            a, b = np.where(spoiled, 0, a), np.where(spoiled, 0, b)
        # Every reading uses w together with r, so it does not matter if w underflows.
        beside = np.abs(np.asarray(want.r)) if name == "w" else 0.0
        bad = ~((np.abs(a - b) <= rtol * (np.abs(b) + beside) + 1e-290) | (a == b) | (np.isnan(a) & np.isnan(b)))
        if np.any(bad):
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise AssertionError(f"{case}\nof {case.x.dtype} {case.x.shape}, {name} at {at}: got {a[at]}, want {b[at]}")


def run(seconds: float, seed: int, fewest: int = 0) -> int:
    """Run as many cases as time allows, but at least `fewest` even on a slow machine; return their number."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end or count < fewest:
        ss.set_num_threads(1 + (seed + count) % 3)
        case = make(seed * 1_000_003 + count)
        try:
            check(case)
        except Exception as problem:
            raise AssertionError(f"seed {case.seed} fails: {case}") from problem
        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(run(options.seconds, options.seed), "calls agree with the definition")


if __name__ == "__main__":
    main()
