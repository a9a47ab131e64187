"""Thousands of random rows: extended precision finds the worst one, and the oracle judges it."""

import functools
import itertools

import numpy as np
import pytest

import softscope as ss
from exactness import wanted
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats, limits
from exactness.logs import allowed, allowed_for
from softscope import bounds

LENGTHS = (2, 3, 7, 33, 500, 5000)
SCALES = (0.01, 1.0, 5.0, 30.0)
SHIFTS = (0.0, 1.0, -3.0, 100.0, 1e4)
SWEPT_TEMPERATURES = (0.1, 0.3, 1.0, 1.7, 10.0)

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2e-19, reason="long double is no wider here: run on x86-64 to lift this"
)
everywhere = pytest.mark.parametrize("backend", BACKENDS)
both = pytest.mark.parametrize("dtype", ["float32", "float64"])
every_temperature = pytest.mark.parametrize("temperature", SWEPT_TEMPERATURES)


@functools.cache
def matrices(dtype: str) -> tuple[np.ndarray, ...]:
    """Rows of every length, scale and shift."""
    rng = np.random.default_rng(12)
    return tuple(
        (scale * rng.normal(size=(max(2, 150 // n), n)) + shift).astype(dtype)
        for n, scale, shift in itertools.product(LENGTHS, SCALES, SHIFTS)
    )


def sums(x: np.ndarray, temperature: float) -> tuple[np.ndarray, ...]:
    """(x - m)/T, its log Σ exp, and m/T, in extended precision; the terms at the maximum are counted separately."""
    x = x.astype(np.longdouble)
    m = x.max(axis=-1, keepdims=True)
    d = (x - m) / np.longdouble(temperature)
    at_top = (d == 0).sum(axis=-1, keepdims=True).astype(np.longdouble)
    rest = np.where(d == 0, 0, np.exp(d)).sum(axis=-1, keepdims=True)
    return d, np.log(at_top) + np.log1p(rest / at_top), m / np.longdouble(temperature)


def worst(ratios: list[np.ndarray], many: tuple[np.ndarray, ...]) -> tuple[int, int, int, tuple[float, ...]]:
    """Where the error is largest relative to its bound: matrix, row, column, and the row itself."""
    index = max(range(len(ratios)), key=lambda i: np.nan_to_num(ratios[i], nan=np.inf).max())
    row, column = np.unravel_index(np.argmax(ratios[index]), ratios[index].shape)
    return index, int(row), int(column), tuple(many[index][row].astype(np.float64).tolist())


def log_bound(
    result: np.ndarray, top: np.ndarray, d: np.ndarray, log_z: np.ndarray, dtype: str, backend: str
) -> np.ndarray:
    mean = -(np.exp(d - log_z) * d).sum(axis=-1, keepdims=True)
    parts = np.broadcast_arrays(*(part.astype(np.float64) for part in (result, top, log_z, mean)))
    each = zip(*(part.flat for part in parts), strict=True)
    return np.array([allowed(*numbers, dtype, backend) for numbers in each]).reshape(parts[0].shape)


@everywhere
@both
@every_temperature
def test_weights(backend: str, dtype: str, temperature: float) -> None:
    _judge_weights(matrices(dtype), backend, dtype, temperature)


@everywhere
@both
@pytest.mark.parametrize(("scale", "shift", "temperature"), [(5.0, 1e4, 1.0), (5.0, 0.0, 1.0), (1.0, 100.0, 0.1)])
def test_weights_where_a_few_share_the_row(
    backend: str, dtype: str, scale: float, shift: float, temperature: float
) -> None:
    """Half the weight lies a few units below the maximum: the errors of those exps add up in the sum."""
    x = (scale * np.random.default_rng(13).normal(size=(500, 500)) + shift).astype(dtype)
    _judge_weights((x,), backend, dtype, temperature)


def _judge_weights(many: tuple[np.ndarray, ...], backend: str, dtype: str, temperature: float) -> None:
    results, ratios = [], []
    for x in many:
        d, log_z, _ = sums(x, temperature)
        p = np.exp(d - log_z)
        results.append(np.asarray(floats(ss.softmax(array(x, dtype, backend), temperature=temperature))))
        kept = p >= limits(dtype).floor
        allowed = np.asarray(bounds.weights(-d * temperature, temperature, dtype))
        ratios.append(np.where(kept, np.abs(results[-1] - p) / np.where(kept, p, 1) / allowed, 0))
    index, i, j, row = worst(ratios, many)
    with Comparison() as compare:
        tolerance = bounds.weights(max(row) - row[j], temperature, dtype)
        what = f"{len(row)} entries at T {temperature}: weight {j}"
        compare.relative(what, row, results[index][i, j], wanted.weights(row, temperature)[j], tolerance)


@everywhere
@both
@every_temperature
def test_logsumexp(backend: str, dtype: str, temperature: float) -> None:
    _judge_logsumexp(matrices(dtype), backend, dtype, temperature)


@everywhere
@both
@every_temperature
def test_logsumexp_where_the_maximum_cancels(backend: str, dtype: str, temperature: float) -> None:
    """The maximum is about -log z, so the result is far smaller than the terms that are added."""
    rng = np.random.default_rng(14)
    rows = [temperature * (rng.normal(size=(1500, n)) - 1.0) for n in (2, 3, 7)]
    _judge_logsumexp(tuple(x.astype(dtype) for x in rows), backend, dtype, temperature)


def _judge_logsumexp(many: tuple[np.ndarray, ...], backend: str, dtype: str, temperature: float) -> None:
    results, ratios = [], []
    for x in many:
        d, log_z, top = sums(x, temperature)
        results.append(np.asarray(floats(ss.logsumexp(array(x, dtype, backend), temperature=temperature)))[:, None])
        ratios.append(np.abs(results[-1] - (top + log_z)) / log_bound(top + log_z, top, d, log_z, dtype, backend))
    index, i, _, row = worst(ratios, many)
    want = wanted.logsumexp(row, temperature)
    with Comparison() as compare:
        tolerance = allowed_for(row, want, temperature, dtype, backend)
        what = f"{len(row)} entries at T {temperature}: logsumexp"
        compare.check(what, row, results[index][i, 0], want, tolerance)


@everywhere
@both
@every_temperature
def test_log_softmax(backend: str, dtype: str, temperature: float) -> None:
    results, ratios = [], []
    for x in matrices(dtype):
        if x.shape[-1] > 500:
            break
        d, log_z, top = sums(x, temperature)
        results.append(np.asarray(floats(ss.log_softmax(array(x, dtype, backend), temperature=temperature))))
        ratios.append(np.abs(results[-1] - (d - log_z)) / log_bound(d - log_z, top, d, log_z, dtype, backend))
    index, i, j, row = worst(ratios, matrices(dtype))
    want = wanted.log_weights(row, temperature)[j]
    with Comparison() as compare:
        tolerance = allowed_for(row, want, temperature, dtype, backend)
        what = f"{len(row)} entries at T {temperature}: log weight {j}"
        compare.check(what, row, results[index][i, j], want, tolerance)
