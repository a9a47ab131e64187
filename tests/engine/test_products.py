"""J·v and the backward passes: lengths, layouts, threads, special values. test_isa.py runs this for each set."""

import ml_dtypes
import numpy as np
import pytest

from softscope import _engine
from softscope._backends.engine import kernels

# Around every lane count (2, 4, 8), where rows stop being taken together (64, 128, 256), and far beyond.
LENGTHS = [*range(1, 35), 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 300, 1000, 5000, 9001]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
U = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8, np.float32: 2.0**-24, np.float64: 2.0**-53}
ALPHAS = [1.0, 1.5, 2.0, 1.3]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
wide = np.longdouble


def as_bits(a):
    return a.view(np.uint16) if a.dtype.itemsize == 2 else a


def run(name, *arrays, numbers, out=None, threads=1):
    """Call the engine the way the package does; one number for all rows, or one per row."""
    x = arrays[0]
    if out is None:
        out = np.full(x.shape, 7.0, dtype=x.dtype)  # so unwritten entries fail
    count = {"jacobian_product": (2,), "log_softmax_backward": (), "scaled_weights": (5,)}[name]
    each = np.broadcast_to(np.asarray(numbers, dtype=np.float64), x.shape[:-1] + count)
    brain = x.dtype == ml_dtypes.bfloat16
    getattr(_engine, name)(*map(as_bits, (*arrays, out)), each, brain, threads)
    return out


def weights(shape, dtype, alpha=1.0, spread=2.0, seed=0):
    """Weights that sum to about 1; for α > 1 a third of them are 0."""
    rng = np.random.default_rng(seed)
    p = np.exp(rng.standard_normal(shape) * spread)
    if alpha > 1.0 and shape[-1] > 1:
        p[..., 1:] *= rng.random(p[..., 1:].shape) > 1 / 3
    return (p / p.sum(axis=-1, keepdims=True)).astype(dtype)


def vectors(shape, dtype, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(p, v, alpha=1.0, temperature=1.0):
    """J·v/T from the textbook formula, in extended precision; also s and the distance of v from its mean."""
    p, v = (a.astype(np.float64).astype(wide) for a in (p, v))
    s = np.where(p > 0, np.power(np.where(p > 0, p, 1), wide(2 - alpha)), 0)
    v = v - np.take_along_axis(v, p.argmax(axis=-1, keepdims=True), axis=-1)
    d = v - (s * v).sum(axis=-1, keepdims=True) / s.sum(axis=-1, keepdims=True)
    return s * d / wide(temperature), s / wide(temperature), d


def assert_product(p, v, got, alpha=1.0, temperature=1.0, shift=0.0):
    """Allow a few roundings of the result and of v's distance from its mean.

    The size of v itself does not matter, except through the square of the roundoff.
    """
    want, s, d = product(p, v, alpha, temperature)
    u = U[p.dtype.type]
    inner = max(2.0**-53, min(u, 2.0**-24))
    spread = np.sqrt((s * d * d).sum(axis=-1, keepdims=True) / s.sum(axis=-1, keepdims=True))
    floor = float(ml_dtypes.finfo(p.dtype).smallest_subnormal)
    each = 8.0
    if u == 2.0**-53:  # no wider float to add up stretches of a long row, or for exp(q·log p)
        each += 0.05 * np.sqrt(p.shape[-1]) - (3 * np.log(float(p[p > 0].min())) if alpha == 1.3 else 0)
    allowed = u * np.abs(want) + inner * s * (each * (np.abs(d) + 2 * spread) + 16 * inner * shift) + 2 * floor
    error = np.abs(got.astype(wide) - want)
    worst = np.unravel_index(np.argmax(error / allowed), error.shape)
    assert error[worst] <= allowed[worst], (
        f"J·v at {worst}: got {got[worst]!r}, want {want[worst]!r}, allowed {allowed[worst]!r}"
    )


@each_dtype
@pytest.mark.parametrize(("alpha", "temperature"), [(1.0, 1.0), (1.0, 0.3), (1.5, 2.0), (2.0, 1.0), (1.3, 1.0)])
def test_every_length(alpha, temperature, dtype):
    for n in LENGTHS:
        shape = (max(1, min(19, 9000 // n)), n)
        p, v = weights(shape, dtype, alpha), vectors(shape, dtype)
        got = run("jacobian_product", p, v, numbers=[temperature, alpha])
        assert_product(p, v, got, alpha, temperature)


@pytest.mark.parametrize("alpha", [1.0, 1.01, 1.25, 1.5, 1.75, 1.9, 1.999, 2.0])
@pytest.mark.parametrize("n", [2, 5, 40, 300, 9000])
def test_denormal_weights(n, alpha):
    """p^(2−α) of the smallest weights has all its digits, though 1/p would overflow."""
    rng = np.random.default_rng(n)
    p = np.exp2(rng.uniform(-1074, -1000, (3, n)))
    p[1:, 0] = 1.0
    p[2, 1] = 5e-324
    v = vectors(p.shape, np.float64)
    for temperature in (1.0, 1e-5):
        want, s, d = product(p, v, alpha, temperature)
        spread = np.sqrt((s * d * d).sum(axis=-1, keepdims=True) / s.sum(axis=-1, keepdims=True))
        allowed = 2.0**-53 * (10 + 3 * 745) * s * (np.abs(d) + spread) + wide(5e-324) * (np.abs(d) + 2) / temperature
        for x, y in zip(layouts(p), layouts(v), strict=True):
            got = run("jacobian_product", x, y, numbers=[temperature, alpha])
            error = np.abs(got.astype(wide) - want)
            worst = np.unravel_index(np.argmax(error / allowed), error.shape)
            assert error[worst] <= allowed[worst], f"p {p[worst]!r}: got {got[worst]!r}, want {want[worst]!r}"


@each_dtype
@pytest.mark.parametrize("rest", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("n", [2, 5, 8, 24, 100, 300, 3000, 270_000])
def test_next_to_one_hot(n, rest, dtype):
    """The largest entry of J is as small as the weight left over, so the error must be, too."""
    rows = 3 if n < 100_000 else 1
    p = (rest / n * (1 + np.arange(n) % 7) / 4 * np.ones((rows, 1))).astype(dtype)
    p[:, n // 2] = 1
    v = vectors(p.shape, dtype)
    assert_product(p, v, run("jacobian_product", p, v, numbers=[1.0, 1.0]))


@each_dtype
@pytest.mark.parametrize("n", [3, 8, 40, 200, 2000, 300_000])
def test_the_columns_of_the_matrix(n, dtype):
    """v may be 1 in a single place, where the weight is large or small: J's entries there keep their digits."""
    p = weights((1, n), dtype)
    for place in (p[0].argmax(), p[0].argmin()):
        v = np.zeros_like(p)
        v[0, place] = 1
        assert_product(p, v, run("jacobian_product", p, v, numbers=[1.0, 1.0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [5, 8, 40, 200, 2000, 300_000])
def test_where_v_lies_does_not_matter(n, alpha, dtype):
    p = weights((2, n), dtype, alpha)
    p[1] /= 1000  # the sum need not be 1
    v = (2.0**14 + np.random.default_rng(2).integers(0, 64, p.shape) / 64).astype(dtype)
    assert_product(p, v, run("jacobian_product", p, v, numbers=[1.0, alpha]), alpha, shift=2.0**14)
    v[:] = 1e6
    assert_product(p, v, run("jacobian_product", p, v, numbers=[1.0, alpha]), alpha, shift=1e6)


def test_the_range_of_float32_is_used_to_its_ends():
    p = weights((4, 40), np.float32)
    v = np.where(np.arange(40) % 2 == 0, 3.4e38, -3.4e38).astype(np.float32) * np.ones((4, 1), np.float32)
    assert_product(p, v, run("jacobian_product", p, v, numbers=[1.0, 1.0]))
    for temperature, size in ((1e-30, 1e-35), (1e30, 1e35)):
        small = weights((4, 40), np.float32, spread=20)
        v = (vectors((4, 40), np.float64) * size).astype(np.float32)
        got = run("jacobian_product", small, v, numbers=[temperature, 1.0])
        assert_product(small, v, got, temperature=temperature)


def layouts(base):
    """The same numbers in different memory layouts; rows run along the last axis."""
    yield base
    yield np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 0)), 0, -1)
    yield np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 1)), 1, -1)
    yield np.repeat(base, 3, axis=-1)[..., ::3]
    yield base[..., ::-1].copy()[..., ::-1]
    yield base[::-1].copy()[::-1]


@each_dtype
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [3, 17, 300])
def test_every_layout(n, alpha, dtype):
    p, v = weights((3, 18, n), dtype, alpha), vectors((3, 18, n), dtype)
    out = np.zeros((n, 18, 3), dtype).transpose(2, 1, 0)
    for x in layouts(p):
        assert_product(p, v, run("jacobian_product", x, v, numbers=[1.0, alpha]), alpha)
        for y in layouts(v):
            assert_product(p, v, run("jacobian_product", x, y, numbers=[1.0, alpha], out=out), alpha)
    for x, y in zip(layouts(p), layouts(v), strict=True):
        got = run("jacobian_product", x, y, numbers=[1.0, alpha], out=np.empty_like(x))
        assert_product(p, v, got, alpha)


@each_dtype
@pytest.mark.parametrize("n", [3, 8, 40, 300])
def test_a_row_does_not_know_its_neighbours(n, dtype):
    """Rows with another α or temperature, or nearly one-hot, are computed next to it and change no bit of it."""
    p, v = weights((2, 37, n), dtype), vectors((2, 37, n), dtype)
    numbers = np.tile([0.5, 1.0], (2, 37, 1))
    q, w, others = p.copy(), v.copy(), numbers.copy()
    for i, change in enumerate([(1.0, 1.5), (2.0, 2.0), (3.0, 1.3)]):
        others[:, i + 1 :: 4] = change
    q[:, 5::8] = np.arange(n) == n // 2
    w[:, 6::8, 0] = np.nan
    for before, after, y, z in zip(*map(layouts, (p, q, v, w)), strict=True):
        got = run("jacobian_product", before, y, numbers=numbers, out=np.empty_like(p))
        beside = run("jacobian_product", after, z, numbers=others, out=np.empty_like(p))
        np.testing.assert_array_equal(beside[:, 0::4], got[:, 0::4])
        assert not np.array_equal(beside[:, 1::4], got[:, 1::4])


@each_dtype
@pytest.mark.parametrize("n", range(1, 9))
def test_short_rows_are_written_to_their_end_and_not_beyond(n, dtype):
    """They are written as whole vectors, and each covers what the one before it wrote too much."""
    for count in (1, 2, 7, 8, 9, 15, 16, 17, 40):
        p, v = weights((count, n), dtype), vectors((count, n), dtype)
        room = np.full(count * n + 64, 7.0, dtype=dtype)
        out = room[32:-32].reshape(count, n)
        run("jacobian_product", p, v, numbers=(1.0, 1.0), out=out)
        alone = [run("jacobian_product", p[i : i + 1], v[i : i + 1], numbers=(1.0, 1.0)) for i in range(count)]
        np.testing.assert_array_equal(as_bits(out), as_bits(np.concatenate(alone)))
        assert (room[:32] == 7).all()
        assert (room[-32:] == 7).all()


@pytest.mark.parametrize("shape", [(1, 700_001), (3, 270_000), (5000, 8), (1500, 130), (9, 20_000)])
def test_threads_change_no_bit(shape):
    p, v = weights(shape, np.float32), vectors(shape, np.float32)
    log_p = np.log(p)
    for name, arrays, numbers in (
        ("jacobian_product", (p, v), [0.7, 1.0]),
        ("jacobian_product", (p, v), [0.7, 1.5]),
        ("log_softmax_backward", (log_p, v), 0.7),
        ("scaled_weights", (v,), [0.7, 5.0, 3.0, 2.0, 0.1]),
    ):
        one = run(name, *arrays, numbers=numbers, threads=1)
        for threads in (2, 3, 7):
            np.testing.assert_array_equal(run(name, *arrays, numbers=numbers, threads=threads), one)


@each_dtype
@pytest.mark.parametrize("n", [5, 8, 40, 300, 1001, 70_000, 300_001])
def test_in_place(n, dtype):
    p, v = weights((3, n), dtype), vectors((3, n), dtype)
    for name, numbers in (
        ("jacobian_product", [0.7, 1.0]),
        ("jacobian_product", [1.0, 1.5]),
        ("log_softmax_backward", 2),
    ):
        want = as_bits(run(name, p, v, numbers=numbers))
        for which in (0, 1):
            pair = [p.copy(), v.copy()]
            run(name, *pair, numbers=numbers, out=pair[which])
            np.testing.assert_array_equal(as_bits(pair[which]), want)
    numbers = [0.7, 5.0, 3.0, 2.0, 0.1]
    want = as_bits(run("scaled_weights", v, numbers=numbers))
    run("scaled_weights", v, numbers=numbers, out=v)
    np.testing.assert_array_equal(as_bits(v), want)


def definition(p, v, alpha):
    """What NumPy computes, for values that are not finite."""
    p, v = p.astype(np.float64), v.astype(np.float64)
    with np.errstate(all="ignore"):
        s = np.where(p > 0, np.power(np.where(p > 0, p, 1), 2 - alpha), p)
        v = v - np.take_along_axis(v, s.argmax(axis=-1, keepdims=True), axis=-1)
        total = s.sum(axis=-1, keepdims=True)
        return s * (v - (s * v).sum(axis=-1, keepdims=True) / np.where(total == 0, 1, total))


@each_dtype
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 24, 100, 1037, 9000])
def test_special_values(n, alpha, dtype):
    clean, v = weights((20, n), dtype), vectors((20, n), dtype)
    places = sorted({0, n // 2, n - 1, int(clean[11].argmax())})
    for layout in range(2):
        for value in (np.nan, np.inf, -np.inf):
            for place in places:
                for which in (0, 1):
                    pair = [clean.copy(), v.copy()]
                    pair[which][11, place] = value
                    if value == -np.inf and which == 0:
                        continue  # a weight cannot be −inf
                    laid = [list(layouts(a[None]))[layout] for a in pair]
                    got = run("jacobian_product", *laid, numbers=[1.0, alpha])[0]
                    want = definition(*pair, alpha)
                    finite = np.isfinite(got[11].astype(np.float64))
                    np.testing.assert_array_equal(finite, np.isfinite(want[11]))
                    if alpha < 2.0:  # at 2 all weights tie for the largest, so which one is meant is open
                        np.testing.assert_array_equal(got[11][~finite].astype(np.float64), want[11][~finite])
                    assert np.isfinite(np.delete(got, 11, axis=0).astype(np.float64)).all()
    p = clean.copy()
    p[11] = 0
    p[12] = 0
    p[12, n // 2] = 1
    got = run("jacobian_product", p, v, numbers=[1.0, alpha])
    assert (got[11:13] == 0).all()


@each_dtype
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_log_softmax_backward(temperature, dtype):
    u, inner = U[dtype], max(2.0**-53, min(U[dtype], 2.0**-24))
    for n in [*LENGTHS, 300_001]:
        shape = (max(1, min(19, 9000 // n)), n)
        with np.errstate(divide="ignore"):
            y = np.log(weights(shape, np.float64, alpha=1.5)).astype(dtype)  # −inf, too
        g = vectors(shape, dtype) + np.asarray(1, dtype)
        got = run("log_softmax_backward", y, g, numbers=temperature).astype(wide)
        e, f = np.exp(y.astype(np.float64).astype(wide)), g.astype(np.float64).astype(wide)
        share = e * f.sum(axis=-1, keepdims=True)
        want = (f - share) / wide(temperature)
        allowed = u * np.abs(want) + inner * (4 * np.abs(want) + 6 * np.abs(share) / temperature)
        assert (np.abs(got - want) <= allowed + 2 * float(ml_dtypes.finfo(dtype).smallest_subnormal)).all(), n


@each_dtype
def test_scaled_weights(dtype):
    u, inner = U[dtype], max(2.0**-53, min(U[dtype], 2.0**-24))
    for n in [*LENGTHS, 300_001]:
        shape = (max(1, min(19, 9000 // n)), n)
        x = vectors(shape, dtype, seed=n) * np.asarray(3, dtype)
        wide_x = x.astype(np.float64).astype(wide)
        m = wide_x.max(axis=-1, keepdims=True)
        numbers = np.empty((*shape[:-1], 5))
        rng = np.random.default_rng(n)
        temperature, z, a, b = (rng.random((4, *shape[:-1], 1)) + 0.5) * [[[1]], [[n]], [[-3]], [[0.1]]]
        for i, each in enumerate((temperature, m, z, a, b)):
            numbers[..., i] = each[..., 0]
        got = run("scaled_weights", x, numbers=numbers).astype(wide)
        d = (wide_x - m) / temperature
        weight = np.exp(d) * a / z
        want = weight + b
        allowed = u * np.abs(want) + inner * (np.abs(want) + np.abs(b) + np.abs(weight) * (6 + 3 * np.abs(d)))
        assert (np.abs(got - want) <= allowed).all(), n


@each_dtype
@pytest.mark.parametrize("n", [3, 8, 40])
def test_layouts_of_the_other_two(n, dtype):
    x, g = (vectors((3, 18, n), dtype, seed) for seed in (3, 4))
    x = -np.abs(x)
    for name, arrays, numbers in (
        ("log_softmax_backward", (x, g), 2.0),
        ("scaled_weights", (x,), [2.0, 0, 3.0, 2.0, 1.0]),
    ):
        want = run(name, *arrays, numbers=numbers).astype(np.float64)
        for laid in zip(*map(layouts, arrays), strict=True):
            for out in (None, np.zeros((n, 18, 3), dtype).transpose(2, 1, 0), np.empty_like(laid[0])):
                got = run(name, *laid, numbers=numbers, out=out).astype(np.float64)
                np.testing.assert_allclose(got, want, rtol=4 * U[dtype], atol=8 * U[dtype])


@each_dtype
@pytest.mark.parametrize("n", [2, 8, 40, 300_000])
def test_rows_without_anything_have_no_weights(n, dtype):
    x = np.full((3, n), -np.inf, dtype)
    x[1] = 1.0
    numbers = [[1.0, -np.inf, 0.0, 5.0, 0.25], [1.0, 1.0, 0.0, 5.0, 0.25], [1.0, np.nan, np.nan, 5.0, 0.25]]
    got = run("scaled_weights", x, numbers=numbers).astype(np.float64)
    assert (got[:2] == 0.25).all()
    assert np.isnan(got[2]).all()


def test_what_would_crash_is_refused():
    x = np.zeros((2, 3), np.float32)
    numbers = np.ones((2, 2))
    for wrong in (np.zeros((2, 4), np.float32), np.zeros((3, 2), np.float32), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="do not fit"):
            _engine.jacobian_product(x, wrong, x.copy(), numbers, False, 1)
        with pytest.raises(ValueError, match="do not fit"):
            _engine.jacobian_product(x, x, wrong, numbers, False, 1)
    for wrong in (np.ones(3), np.ones((2, 3)), np.ones((2, 4))[:, ::2], 1.0):
        with pytest.raises(ValueError, match="do not fit"):
            _engine.jacobian_product(x, x, x.copy(), wrong, False, 1)
    with pytest.raises(ValueError, match="do not fit"):
        _engine.scaled_weights(x, x.copy(), numbers, False, 1)


@each_dtype
def test_the_bridge(dtype):
    """What the other backends call: α and T as one number or one per row; False where the engine cannot do it."""
    p, v = weights((4, 40), dtype), vectors((4, 40), dtype)
    out = np.empty_like(p)
    assert kernels.jacobian_product(p, v, 1.0, 0.5, out)
    assert_product(p, v, out, temperature=0.5)
    alpha, hot = np.array([[1.0], [1.5], [2.0], [1.3]]), np.array([[1.0], [0.5], [2.0], [3.0]])
    assert kernels.jacobian_product(p, v, alpha, hot, out)
    for i in range(4):
        assert_product(p[i : i + 1], v[i : i + 1], out[i : i + 1], alpha[i, 0], hot[i, 0])
    assert not kernels.jacobian_product(p, v, 1.0, np.inf, out)
    assert not kernels.jacobian_product(p, v, 2.5, 1.0, out)
    assert not kernels.jacobian_product(p, v, alpha + 0.5, hot, out)
    assert not kernels.jacobian_product(p[:0], v[:0], 1.0, 1.0, out[:0])
    y = np.log(p)
    assert kernels.log_softmax_backward(y, v, hot, out)
    np.testing.assert_array_equal(as_bits(out), as_bits(run("log_softmax_backward", y, v, numbers=hot[:, 0])))
    assert not kernels.log_softmax_backward(y, v, np.full((4, 1), np.nan), out)
