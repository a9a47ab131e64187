"""softmax_f32 against its definition in extended precision. test_isa.py runs it for each instruction set."""

import sys
import threading
import time

import numpy as np
import pytest

from softscope import _engine

U = 2.0**-24
TINY = float(np.finfo(np.float32).tiny)  # the smallest normal number
LARGEST = float(np.finfo(np.float32).max)
# Around every number of lanes (4, 8) and every block of vectors (16, 32), and far beyond.
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 129, 1000, 65537, 1000003]


def softmax(x):
    x = np.ascontiguousarray(x, dtype=np.float32)
    out = np.full_like(x, 7.0)  # nothing that is left over passes for a weight
    _engine.softmax_f32(x, out)
    return out


def distances(x):
    x = np.asarray(x, dtype=np.float32).astype(np.longdouble)
    return x.max(axis=1, keepdims=True) - x


def exact(x):
    terms = np.exp(-distances(x))
    return terms / terms.sum(axis=1, keepdims=True)


def logits(rows, n, spread, seed=0):
    return (np.random.default_rng(seed).standard_normal((rows, n)) * spread).astype(np.float32)


def assert_weights(x):
    """Every weight within u·(5 + |x−m|) of the exact one; those below normal numbers, within the smallest."""
    x = np.asarray(x, dtype=np.float32)
    got, want = softmax(x), exact(x)
    tolerance = np.maximum(want * U * (5 + distances(x)), np.where(want < TINY, TINY, 0))
    error = np.abs(got - want)
    assert np.isfinite(got).all()
    assert (got >= 0).all()
    worst = np.unravel_index(np.argmax(error / tolerance), x.shape)
    assert error[worst] <= tolerance[worst], (
        f"at {worst}: x {x[worst]!r}, max {x[worst[0]].max()!r}, got {got[worst]!r}, want {want[worst]!r}, "
        f"error {error[worst]}, tolerance {tolerance[worst]}"
    )


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_weight_is_within_the_bound(n, spread):
    assert_weights(logits(max(1, min(200, 20000 // n)), n, spread))


@pytest.mark.parametrize("n", LENGTHS)
def test_the_weights_sum_to_one(n):
    total = softmax(logits(max(1, min(200, 20000 // n)), n, 3.0)).astype(np.longdouble).sum(axis=1)
    worst = float(np.abs(total - 1).max())
    assert worst <= 2 * U * np.sqrt(n), (n, worst / U)


def test_weights_down_to_underflow_and_beyond():
    # The largest logit alone, so that a weight is exp(x) and all of exp's range is seen.
    x = np.linspace(-110, -60, 100_000, dtype=np.float32)[:, None]
    assert_weights(np.concatenate([np.zeros_like(x), x], axis=1))


def test_every_binade_of_small_distances():
    x = -(np.float32(2.0) ** np.arange(-149, 7, dtype=np.float32)[:, None])
    assert_weights(np.concatenate([np.zeros_like(x), x], axis=1))


@pytest.mark.parametrize("below", [0.1, 3.3, 10.0, 11.7])
@pytest.mark.parametrize("n", [33, 1000, 8192])
def test_many_equal_terms_beside_a_large_one_do_not_drift(n, below):
    x = np.full((64, n), -below) * (1 + np.arange(64)[:, None] / 40)
    x[np.arange(64), np.arange(64) % n] = 0  # at every place of a block of vectors
    assert_weights(x)


@pytest.mark.parametrize("shift", [-30000.0, -100.0, 100.0, 30000.0])
def test_a_shift_costs_nothing_once_the_logits_are_rounded(shift):
    assert_weights(logits(50, 100, 3.0) + np.float32(shift))


def test_the_largest_and_the_lowest_finite_numbers():
    got = softmax([[LARGEST, 0.0, -LARGEST], [-LARGEST, -LARGEST, -LARGEST], [LARGEST, LARGEST, -1.0]])
    np.testing.assert_array_equal(got, np.float32([[1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0]]))


def test_equal_logits_share_exactly():
    for n in [1, 2, 4, 8, 32, 1024]:
        np.testing.assert_array_equal(softmax(np.full((2, n), 3.7)), np.full((2, n), 1 / n, np.float32))


def test_minus_inf_weighs_exactly_nothing():
    x = logits(8, 37, 2.0)
    hidden = np.random.default_rng(1).random(x.shape) < 0.5
    hidden[:, 5] = False
    got = softmax(np.where(hidden, -np.inf, x))
    assert (got[hidden] == 0).all()
    for row, visible, weights in zip(x, ~hidden, got, strict=True):
        np.testing.assert_allclose(weights[visible], exact(row[visible][None])[0], rtol=20 * U)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf])
@pytest.mark.parametrize("n", [1, 3, 8, 13, 45])
def test_nan_or_inf_spoils_its_row_and_no_other(n, value):
    for column in range(n):
        x = logits(3, n, 2.0)
        alone = softmax(x)
        x[1, column] = value
        got = softmax(x)
        assert np.isnan(got[1]).all(), (column, got[1])
        np.testing.assert_array_equal(got[[0, 2]], alone[[0, 2]])


def test_nan_with_any_payload_stays_nan():
    bits = np.concatenate([0x7F800001 + np.arange(512), 0x7FC00000 + np.arange(512), 0xFF800001 + np.arange(512)])
    x = np.zeros((bits.size, 11), np.float32)
    x[:, 4] = bits.astype(np.uint32).view(np.float32)
    assert np.isnan(softmax(x)).all()


@pytest.mark.parametrize("n", [1, 3, 8, 13, 45])
def test_a_row_of_minus_inf_is_nan_and_no_other(n):
    x = logits(3, n, 2.0)
    alone = softmax(x)
    x[1] = -np.inf
    got = softmax(x)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(got[[0, 2]], alone[[0, 2]])


def test_inf_beside_minus_inf_is_nan():
    assert np.isnan(softmax([[np.inf, -np.inf, 0.0], [np.nan, np.inf, -np.inf]])).all()


@pytest.mark.parametrize("n", LENGTHS[:-2])
def test_in_place_gives_the_same_bits(n):
    x = logits(5, n, 3.0)
    want = softmax(x)
    _engine.softmax_f32(x, x)
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("n", [1, 5, 8, 13, 64, 100])
def test_a_row_gives_the_same_bits_at_any_address(n):
    row = logits(1, n, 3.0)
    want = softmax(row)
    for offset in range(9):
        memory = np.zeros(n + 16, np.float32)
        x = memory[offset : offset + n].reshape(1, n)
        x[:] = row
        _engine.softmax_f32(x, x)
        np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("n", [1, 3, 8, 13, 37])
def test_nothing_is_written_beside_out_and_x_is_not_touched(n):
    memory = np.full(3 * n + 40, 7.0, np.float32)
    out = memory[20 : 20 + 3 * n].reshape(3, n)
    x = logits(3, n, 3.0)
    before = x.copy()
    x.flags.writeable = False
    _engine.softmax_f32(x, out)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(out, softmax(x))
    assert (memory[:20] == 7).all()
    assert (memory[20 + 3 * n :] == 7).all()


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_an_empty_array_is_nothing_to_do(shape):
    _engine.softmax_f32(np.empty(shape, np.float32), np.empty(shape, np.float32))


def array(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def read_only():
    a = array(4, 6)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize("bad", [array(4, 6, dtype=np.float64), array(4, 6, dtype=np.float16),
                                 array(4, 6, dtype=np.int32), array(6), array(2, 2, 6), array(6, 4).T,
                                 array(4, 12)[:, ::2], array(8, 6)[::2], [[0.0] * 6] * 4, None])  # fmt: skip
def test_anything_but_a_contiguous_float32_matrix_is_a_type_error(bad):
    for x, out in [(bad, array(4, 6)), (array(4, 6), bad)]:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _engine.softmax_f32(x, out)


def test_a_read_only_out_is_a_type_error():
    out = read_only()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _engine.softmax_f32(array(4, 6), out)
    assert (out == 0).all()


@pytest.mark.parametrize("shape", [(4, 5), (3, 6), (6, 4), (4, 0)])
def test_shapes_that_differ_are_a_value_error(shape):
    out = np.full(shape, 7.0, np.float32)
    with pytest.raises(ValueError, match=r"^out must have the shape of x, \(4, 6\), but has \(\d, \d\)\.$"):
        _engine.softmax_f32(array(4, 6), out)
    assert (out == 7).all()


@pytest.mark.parametrize("offset", [1, 6, 23])
def test_memory_that_overlaps_in_part_is_a_value_error(offset):
    memory = array(60)
    one, other = memory[:24].reshape(4, 6), memory[offset : offset + 24].reshape(4, 6)
    for x, out in [(one, other), (other, one)]:
        with pytest.raises(ValueError, match="overlaps in part"):
            _engine.softmax_f32(x, out)
    _engine.softmax_f32(one, memory[24:48].reshape(4, 6))  # side by side is apart


@pytest.fixture
def quick_switches():
    """Threads take turns at once, not after 5 ms, which is as long as the work below."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_other_threads_run_meanwhile():
    x = array(2048, 8192)
    span = []

    def work():
        span.append(time.perf_counter())
        _engine.softmax_f32(x, x)
        span.append(time.perf_counter())

    # One success proves it: while the interpreter is held, nothing here runs in the middle of the work.
    for _ in range(50):
        span.clear()
        ticks = []
        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            ticks.append(time.perf_counter())
        quarter = (span[1] - span[0]) / 4
        if any(span[0] + quarter < t < span[1] - quarter for t in ticks):
            return
    pytest.fail("no other thread ran during 50 calls")
