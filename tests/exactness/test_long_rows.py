"""Rows of 100 000 entries, against extended precision: what a running sum in the dtype would lose shows here."""

import math

import numpy as np
import pytest

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats, limits
from softscope import bounds

N = 100_000
KINDS = ("normals", "alike", "one far above", "shifted")

wide_enough = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2e-19, reason="long double is no wider here: run on x86-64 to lift this"
)


def row(kind: str, dtype: str) -> np.ndarray:
    """One long row, exact in the dtype."""
    rng = np.random.default_rng(7)
    x = {
        "normals": 3 * rng.normal(size=N),
        "alike": np.full(N, 0.1),
        "one far above": np.append(rng.normal(size=N - 1), 30.0),
        "shifted": 1e4 + rng.normal(size=N),
    }[kind]
    return x.astype(dtype)


@wide_enough
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_long_row(backend: str, dtype: str, kind: str, temperature: float) -> None:
    x = row(kind, dtype)
    given = array(x, dtype, backend)
    wide = x.astype(np.longdouble)
    d = (wide - wide.max()) / np.longdouble(temperature)
    e = np.exp(d)
    z = e.sum()
    p = e / z

    got = np.asarray(floats(ss.softmax(given, temperature=temperature)))
    at = int(np.argmax(np.abs(got - p) / (p * (5 + 3 * np.abs(d)))))
    allowed = bounds.weights(float(x.max()) - float(x[at]), temperature, dtype)
    log_z = np.log(z)
    lse = wide.max() / temperature + log_z
    entropy = log_z - (e * d).sum() / z
    others = np.delete(p, np.argmax(p))
    trace = (others * (1 - others)).sum() + (1 - others.sum()) * others.sum()
    partition = ss.partition(given, temperature=temperature)
    mean = float((p * d).sum())
    variance = float((p * (d - mean) ** 2).sum())
    with Comparison() as compare:
        compare.relative(f"{kind}: weight {at}", x[at : at + 1], got[at], p[at], allowed, floor=limits(dtype).floor)
        compare.check(f"{kind}: sum", kind, math.fsum(got), 1, bounds.sum_to_one(N, dtype))
        tolerance = bounds.logsumexp(float(lse), float(x.max()) / temperature, dtype)
        compare.check(f"{kind}: logsumexp", kind, floats(ss.logsumexp(given, temperature=temperature)), lse, tolerance)
        compare.relative(f"{kind}: entropy", kind, floats(partition.entropy), entropy, bounds.readings(dtype))
        compare.relative(f"{kind}: trace", kind, floats(partition.jacobian_trace), trace, bounds.readings(dtype))
        if variance:
            tolerance = bounds.variance(mean, variance, dtype)
            compare.relative(f"{kind}: variance", kind, floats(partition.variance), variance, tolerance)
