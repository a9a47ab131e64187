"""The Jacobian and its product, against high-precision differences, including near one-hot."""

import functools

import pytest
from mpmath import mp, mpf

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import derivatives, sparse
from softscope import bounds

ROWS = {
    "ordinary": (0.5, -1.0, 0.75, 0.25, -0.25),
    "tied": (1.0, 1.0, 0.25),
    "gap 12": (0.0, -12.0, -12.5, -14.0),
    "1e-8 from one-hot": (-18.5, 0.0, -19.0, -25.0),
    "gap 40": (0.0, -40.0, -41.0),
    "length 1": (3.0,),
}
V = (0.75, -1.5, 0.25, 2.0, -0.5)
SETTINGS = ((1.0, 1.0), (1.0, 0.5), (1.25, 1.0), (1.5, 2.0), (2.0, 1.0), (2.5, 1.0), (5.0, 3.0))


@functools.cache
def wanted_jacobian(name: str, alpha: float, temperature: float) -> list[list[mpf]]:
    return derivatives.jacobian(lambda x: sparse.entmax(x, alpha, temperature), ROWS[name])


def sizes(name: str, alpha: float, temperature: float, dtype: str) -> tuple[list[list[mpf]], mpf]:
    """The matrix, and a tolerance relative to its largest entry, which is itself small near one-hot."""
    want = wanted_jacobian(name, alpha, temperature)
    largest = max(abs(v) for line in want for v in line)
    return want, bounds.readings(dtype) * largest


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("alpha", "temperature"), SETTINGS)
@pytest.mark.parametrize("name", ROWS)
def test_jacobian_and_product(backend: str, dtype: str, alpha: float, temperature: float, name: str) -> None:
    row = ROWS[name]
    x = array(row, dtype, backend)
    p = ss.entmax(x, alpha, temperature=temperature)
    want, tolerance = sizes(name, alpha, temperature, dtype)
    dense = floats(ss.jacobian(p, alpha=alpha, temperature=temperature))
    v = V[: len(row)]
    product = floats(ss.jacobian_product(p, array(v, dtype, backend), alpha=alpha, temperature=temperature))
    with Comparison() as compare, mp.workdps(60):
        for i, line in enumerate(want):
            for j, w in enumerate(line):
                compare.check(f"{name}: J[{i}][{j}]", row, dense[i][j], w, tolerance)
            exact = mp.fsum(w * mpf(u) for w, u in zip(line, v, strict=True))
            compare.check(f"{name}: (J v)[{i}]", row, product[i], exact, 2 * tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ROWS)
def test_product_with_a_shifted_v(backend: str, name: str) -> None:
    """J maps constants to 0: a v far from 0 costs no more than the rounding of its own differences."""
    row = ROWS[name]
    want, tolerance = sizes(name, 1.0, 1.0, "float64")
    v = [1024.0 + u for u in V[: len(row)]]
    p = ss.softmax(array(row, "float64", backend))
    got = floats(ss.jacobian_product(p, array(v, "float64", backend)))
    with Comparison() as compare, mp.workdps(60):
        for i, line in enumerate(want):
            exact = mp.fsum(w * mpf(u) for w, u in zip(line, v, strict=True))
            compare.check(f"{name}: (J v)[{i}]", row, got[i], exact, 2 * tolerance)
