"""The sparsemax and entmax kernels against the float64 definition. test_isa.py runs this for each set."""

import math

import ml_dtypes
import numpy as np
import pytest

from softscope import _engine, bounds
from softscope._backends.reference.entmax import entmax as definition

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
ALPHAS = [1.0, 1 + 1e-9, 1.1, 1.5, 1.9, 2.0, 2 + 1e-9, 3.0, 40.0]
SPREADS = [1e-3, 1.0, 4.0]


def run(x, alpha, temperature=1.0, threads=1, out=None):
    """Call the engine the way the package does: one number per row, 16-bit floats as their bits."""
    out = np.full(x.shape, 7.0, x.dtype) if out is None else out  # so unwritten entries fail
    bits = [a.view(np.uint16) if a.dtype.itemsize == 2 else a for a in (x, out)]
    numbers = np.empty((*x.shape[:-1], 2))
    numbers[..., 0], numbers[..., 1] = temperature, alpha
    _engine.entmax(*bits, numbers, x.dtype == ml_dtypes.bfloat16, threads)
    return out


def logits(shape, dtype, spread=1.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * spread).astype(dtype)


def kept(values, x):
    """Per-row numbers in the shape the definition takes, with the axis kept."""
    return np.broadcast_to(np.asarray(values, np.float64), x.shape[:-1])[..., None]


def assert_right(x, got, alpha, temperature=1.0):
    """The definition's weights, rounded once; where alpha is 1, within softmax's bound."""
    wide = x.astype(np.float64)
    a, t = kept(alpha, x), kept(temperature, x)
    want = definition(wide, a, t)
    u = bounds.unit_roundoff(x.dtype)
    with np.errstate(over="ignore"):
        d = (wide.max(axis=-1, keepdims=True) - wide) / t
        share = np.where(a == 1.0, 5 + 3 * d, 1.001) * u
    # The smallest steps of float16, plus the float64 error of the definition and ours: 128 of its u.
    allowed = np.minimum(share, 1.0) * want + float(ml_dtypes.finfo(x.dtype).tiny) * u + 2.0**-46
    error = np.abs(got.astype(np.float64) - want)
    worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error - allowed)), error.shape)
    assert error[worst] <= allowed[worst], f"at {worst}: got {got[worst]!r}, want {want[worst]!r}"
    assert allowed[a[..., 0] > 1].max(initial=0) <= max(bounds.readings(x.dtype), bounds.support(x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_length(alpha, dtype):
    for n in range(1, 301):
        x = logits((3, n), dtype, SPREADS[n % 3], seed=n)
        temperature = (1.0, 0.3, 2.5)[n // 3 % 3]
        assert_right(x, run(x, alpha, temperature), alpha, temperature)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("n", [1000, 9001, 270_001])
def test_long_rows(n, spread, dtype):
    x = logits((2, n), dtype, spread)
    for alpha in (1.0, 1.3, 1.5, 2.0, 3.0, 20.0) if n < 10_000 else (1.5, 2.0, 3.0):
        assert_right(x, run(x, alpha, threads=2), alpha)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", [1 + 1e-9, 1.25, 1.5, 2.0, 3.0, 30.0])
@pytest.mark.parametrize("kind", ["alike", "close", "one above", "ramp", "ties at the edge"])
def test_sums_to_one(kind, alpha, dtype):
    for n in (7, 50, 200, 5000, 300_000):
        steps = np.arange(n, dtype=np.float64)
        x = {
            "alike": np.full(n, 0.7),
            "close": 1e-6 * np.sin(steps),
            "one above": np.where(steps == n // 2, 0.9, 0.0),
            "ramp": steps / n,
            # Many entries share what the first leaves over: an error in the root would count n times.
            "ties at the edge": np.where(steps == 0, 0.5 / (alpha - 1), 1e-9),
        }[kind].astype(dtype)
        got = run(x, alpha).astype(np.float64)
        assert abs(math.fsum(got) - 1) <= bounds.sum_to_one(n, dtype), f"{n}: {math.fsum(got) - 1}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_ties_share(alpha, dtype):
    for n in (2, 9, 30, 70, 400):
        x = np.full((2, n), -5000.0, dtype)  # exp of that distance is 0 in every dtype
        x[:, [0, n - 1]] = 1.25
        want = np.zeros_like(x)
        want[:, [0, n - 1]] = 0.5
        np.testing.assert_array_equal(run(x, alpha).astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40, 100, 1000])
def test_an_entry_at_the_edge_has_no_weight(n, dtype):
    for alpha, distance in ((2.0, 1.0), (1.5, 2.0), (1.25, 4.0), (3.0, 0.5), (9.0, 0.125)):
        x = np.full(n, -100.0, dtype)
        x[0], x[n // 2] = 3.0, 3.0 - distance
        want = np.zeros(n)
        want[0] = 1.0
        np.testing.assert_array_equal(run(x, alpha).astype(np.float64), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [4, 30, 64, 65, 200])
def test_each_row_has_its_own_numbers_and_no_neighbours(n, dtype):
    x = logits((40, n), dtype, 1.5)
    alpha = np.resize(ALPHAS, 40)
    temperature = np.linspace(0.2, 3.0, 40)
    together = run(x, alpha, temperature)
    assert_right(x, together, alpha, temperature)
    for i in range(40):
        alone = run(x[i : i + 1], alpha[i : i + 1], temperature[i : i + 1])
        np.testing.assert_array_equal(alone[0], together[i])
    shared = np.full_like(x, 7.0)
    bits = [a.view(np.uint16) if a.dtype.itemsize == 2 else a for a in (x, shared)]
    _engine.entmax(*bits, np.array((0.7, 1.5)), x.dtype == ml_dtypes.bfloat16, 1)
    np.testing.assert_array_equal(shared, run(x, 1.5, 0.7))


def layouts(base):
    """The same numbers in different memory layouts; rows run along the last axis."""
    yield "contiguous", base
    yield "across", np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 0)), 0, -1)
    yield "in the middle", np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 1)), 1, -1)
    yield "every third", np.repeat(base, 3, axis=-1)[..., ::3]
    yield "backwards", base[..., ::-1].copy()[..., ::-1]
    yield "rows backwards", base[::-1].copy()[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40, 100, 700])
def test_every_layout(n, dtype):
    base = logits((4, 21, n), dtype)
    alpha = np.resize([*ALPHAS, 2.0], (4, 21))
    for kind, x in layouts(base):
        np.testing.assert_array_equal(x, base, err_msg=kind)
        assert_right(x, run(x, alpha), alpha)
        assert_right(x, run(x, 1.5, out=np.zeros((n, 21, 4), dtype).transpose(2, 1, 0)), 1.5)
        in_place = x.copy(order="K")
        run(in_place, alpha, out=in_place)
        assert_right(x, in_place, alpha)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 40, 100, 1001, 70_000, 300_001])
def test_in_place(n, dtype):
    x = logits((4, n), dtype)
    alpha = [1.0, 1.5, 2.0, 3.0]
    want = run(x, alpha)
    run(x, alpha, out=x)
    np.testing.assert_array_equal(x.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("shape", [(1, 700_001), (3, 270_000), (3000, 8), (1000, 70), (9, 20_000)])
def test_threads_change_no_bit(shape, spread):
    x = logits(shape, np.float32, spread)
    alpha = np.resize([3.0, 2.0, 1.0, 1.5], shape[0])
    one = run(x, alpha)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(run(x, alpha, threads=threads), one)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 24, 64, 65, 100, 1037])
def test_special_values_stay_in_their_row(n, dtype):
    clean = logits((40, n), dtype)
    others = np.arange(40) != 17
    for alpha in (1.0, 1.2, 1.5, 2.0, 3.0):
        before = run(clean, alpha)
        for value in (np.nan, np.inf, -np.inf):
            for place in {0, n // 2, n - 1}:
                x = clean.copy()
                x[17, place] = value
                got = run(x, alpha).astype(np.float64)
                np.testing.assert_array_equal(got[others], before[others].astype(np.float64))
                if value != -np.inf or n == 1:
                    assert np.isnan(got[17]).all()
                else:
                    assert got[17, place] == 0
                    assert_right(np.delete(x[17:18], place, axis=1), run(x, alpha)[17:18, np.arange(n) != place], alpha)
        x = clean.copy()
        x[17] = -np.inf
        assert np.isnan(run(x, alpha)[17].astype(np.float64)).all()


@pytest.mark.parametrize("place", [0, 70_000, 269_999])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_values_in_a_row_that_threads_share(value, place):
    x = logits((2, 270_000), np.float32)
    x[1, place] = value
    for alpha in (2.0, 3.0):
        got = run(x, [1.5, alpha], threads=2)
        assert_right(x[:1], got[:1], 1.5)
        assert np.isnan(got[1]).all()
    x[1] = -np.inf
    for alpha in (2.0, 3.0):
        assert np.isnan(run(x, [1.5, alpha])[1]).all()
    x[1, place] = 1.0
    for alpha in (2.0, 3.0):
        assert run(x, [1.5, alpha])[1].nonzero()[0].tolist() == [place]


@pytest.mark.parametrize("n", [6, 100, 300_000])
def test_huge_and_tiny_numbers(n):
    for dtype in (np.float32, np.float64):
        big, tiny = float(np.finfo(dtype).max), float(np.finfo(dtype).smallest_subnormal)
        for values in ([big, -big, 0.0], [-big, -big / 2, -big], [tiny, 0.0, -tiny], [big, big, 1.0]):
            x = np.resize(np.asarray(values), n).astype(dtype)
            for alpha in (1 + 2.0**-52, 1.5, 1.7, 2.0, *((3.0, 1e5, 1e300) if n < 1000 else ())):
                for temperature in (1e-25, 1.0, 1e25):
                    assert_right(x, run(x, alpha, temperature), alpha, temperature)


def test_what_would_crash_is_refused():
    x, out = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for numbers in (np.ones(3), np.ones((2, 1)), np.ones((3, 2)), np.ones((2, 4))[:, ::2], np.ones((1, 2, 2)), 1.0):
        with pytest.raises(ValueError, match="do not fit"):
            _engine.entmax(x, out, numbers, False, 1)
    _engine.entmax(x, out, np.full((2, 2), 2.0), False, 1)
    np.testing.assert_allclose(out, 1 / 3)
