"""Weights, their sum, logsumexp and log_softmax on every class of input."""

import math

import pytest

import softscope as ss
from exactness import wanted
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, DTYPES, TEMPERATURES, array, cases, floats, limits
from exactness.logs import allowed_for
from softscope import bounds

everywhere = pytest.mark.parametrize("backend", BACKENDS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_temperature = pytest.mark.parametrize("temperature", TEMPERATURES)


@everywhere
@every_dtype
@every_temperature
def test_weights(backend: str, dtype: str, temperature: float) -> None:
    with Comparison() as compare:
        for name, row in cases(dtype):
            got = floats(ss.softmax(array(row, dtype, backend), temperature=temperature))
            top = max(row)
            for x, g, w in zip(row, got, wanted.weights(row, temperature), strict=True):
                tolerance = bounds.weights(top - x, temperature, dtype)
                compare.relative(f"{name}: weight of {x!r}", row, g, w, tolerance, floor=limits(dtype).floor)


@everywhere
@every_dtype
@every_temperature
def test_weights_sum_to_one(backend: str, dtype: str, temperature: float) -> None:
    with Comparison() as compare:
        for name, row in cases(dtype):
            got = math.fsum(floats(ss.softmax(array(row, dtype, backend), temperature=temperature)))
            compare.check(f"{name}: sum of weights", row, got, 1, bounds.sum_to_one(len(row), dtype))


@everywhere
@every_dtype
@every_temperature
def test_logsumexp(backend: str, dtype: str, temperature: float) -> None:
    floor, largest = limits(dtype)
    with Comparison() as compare:
        for name, row in cases(dtype):
            got = floats(ss.logsumexp(array(row, dtype, backend), temperature=temperature))
            want = wanted.logsumexp(row, temperature)
            tolerance = allowed_for(row, want, temperature, dtype, backend)
            compare.check(f"{name}: logsumexp", row, got, want, tolerance, floor=floor, largest=largest)


@everywhere
@every_dtype
@every_temperature
def test_log_softmax(backend: str, dtype: str, temperature: float) -> None:
    floor, largest = limits(dtype)
    with Comparison() as compare:
        for name, row in cases(dtype):
            got = floats(ss.log_softmax(array(row, dtype, backend), temperature=temperature))
            for x, g, w in zip(row, got, wanted.log_weights(row, temperature), strict=True):
                tolerance = allowed_for(row, w, temperature, dtype, backend)
                what = f"{name}: log weight of {x!r}"
                compare.check(what, row, g, w, tolerance, floor=floor, largest=largest)


@everywhere
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_hides_what_it_hides(backend: str, dtype: str) -> None:
    row, see = (9.0, 0.5, -1.0, 300.0, 0.25), (False, True, True, False, True)
    where = array(see, dtype, backend) > 0
    x = array(row, dtype, backend)
    with Comparison() as compare:
        for temperature in (0.5, 1.0):
            got = floats(ss.softmax(x, where=where, temperature=temperature))
            for v, g, w in zip(row, got, wanted.weights(row, temperature, see), strict=True):
                tolerance = bounds.weights(abs(v - 0.5), temperature, dtype)
                compare.relative(f"visible {see}: weight of {v}", row, g, w, tolerance)
            want = wanted.logsumexp(row, temperature, see)
            got = floats(ss.logsumexp(x, where=where, temperature=temperature))
            tolerance = allowed_for(row, want, temperature, dtype, backend, see)
            compare.check(f"visible {see}: logsumexp", row, got, want, tolerance)
