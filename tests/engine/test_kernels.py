"""The kernels themselves: lengths, layouts, threads, forks. test_isa.py runs this for each instruction set."""

import os
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from softscope import _engine

# Around every lane count (2, 4, 8), every block of vectors, the ends of short rows (24, 64), and far beyond.
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 63, 64, 65, 127, 129, 1000, 9000]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
U = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8, np.float32: 2.0**-24, np.float64: 2.0**-53}
OPERATIONS = ("softmax", "log_softmax", "logsumexp", "state")


def run(name, x, threads=1, temperature=1.0, out=None):
    """Call the engine the way the package does, with 16-bit floats passed as their bits."""
    if out is None:
        shape = {"logsumexp": x.shape[:-1], "state": (*x.shape[:-1], 7)}.get(name, x.shape)
        out = np.full(shape, 7.0, dtype=np.float64 if name == "state" else x.dtype)  # so unwritten entries fail
    bits = [a.view(np.uint16) if a.dtype.itemsize == 2 else a for a in (x, out)]
    t = np.broadcast_to(np.asarray(temperature, dtype=np.float64), x.shape[:-1])
    getattr(_engine, name)(*bits, t, x.dtype == ml_dtypes.bfloat16, threads)
    return out


def exact(name, x, temperature=1.0):
    """The same in extended precision, from the textbook formulas."""
    wide = x.astype(np.float64).astype(np.longdouble) / np.longdouble(temperature)
    m = wide.max(axis=-1, keepdims=True)
    d = wide - m
    z = np.exp(d).sum(axis=-1, keepdims=True)
    if name == "softmax":
        return np.exp(d) / z
    if name == "log_softmax":
        return d - np.log(z)
    return (m + np.log(z))[..., 0]


def logits(shape, dtype, spread=3.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * spread).astype(dtype)


def assert_right(name, x, got, temperature=1.0):
    want = exact(name, x, temperature)
    u = U[x.dtype.type]
    d = x.astype(np.longdouble) - x.astype(np.longdouble).max(axis=-1, keepdims=True)
    if name == "softmax":
        # Below the smallest normal number: allow one denormal step, or the whole value in float32 and bfloat16.
        tiny = float(ml_dtypes.finfo(x.dtype).tiny)
        floor = tiny * 2 * u if x.dtype == np.float16 else tiny
        allowed = np.maximum(want * u * (5 + 3 * np.abs(d) / temperature), np.where(want < tiny, floor, 0))
    else:
        larger = np.maximum(
            np.abs(want), np.abs(x.astype(np.float64).max(-1, keepdims=name != "logsumexp") / temperature)
        )
        # 8u: rounding of the result and, in float64, the error of log z and the distances
        allowed = u * (8 * larger + 8)
    error = np.abs(got.astype(np.longdouble) - want)
    worst = np.unravel_index(np.argmax(error / allowed), error.shape)
    assert error[worst] <= allowed[worst], f"{name} at {worst}: got {got[worst]!r}, want {want[worst]!r}"


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n, dtype, temperature):
    x = logits((max(1, min(37, 9000 // n)), n), dtype)
    for name in OPERATIONS[:3]:
        assert_right(name, x, run(name, x, temperature=temperature), temperature)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_state(n, dtype):
    x = logits((5, n), dtype)
    count, c, m, r, u, t, w = np.moveaxis(run("state", x), -1, 0)
    wide = x.astype(np.longdouble)
    d = wide - wide.max(axis=-1, keepdims=True)
    e = np.where(d < 0, np.exp(d), 0)
    np.testing.assert_array_equal(count, n)
    np.testing.assert_array_equal(c, (d == 0).sum(axis=-1))
    np.testing.assert_array_equal(m, wide.max(axis=-1))
    for got, want in ((r, e), (u, e * d), (t, e * d * d), (w, e * e)):
        np.testing.assert_allclose(got, want.sum(axis=-1).astype(np.float64), rtol=2e-6, atol=1e-300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 20, 40, 300, 20_000, 300_000])
def test_a_state_with_nan_counts_every_entry(n, dtype):
    x = logits((3, n), dtype)
    x[0, n // 2], x[1, 0], x[1, -1] = np.nan, np.nan, -np.inf
    for layout in (x, np.asfortranarray(x)):
        count, c, m = np.moveaxis(run("state", layout), -1, 0)[:3]
        np.testing.assert_array_equal(count, [n, n - 1, n])
        np.testing.assert_array_equal(np.isnan(c), [True, True, False])
        np.testing.assert_array_equal(np.isnan(m), [True, True, False])


@pytest.mark.parametrize("n", [20, 40, 3000, 300_000])
@pytest.mark.parametrize("kind", ["far below", "nearly even"])
def test_a_state_whose_terms_float32_cannot_hold(kind, n):
    """In float32, e^-150 and the square of 1e-40 are 0, yet entropy and variance consist of just such terms."""
    steps = np.arange(n, dtype=np.float64)
    x = np.where(steps == 7, 64.0, -86.0 - 0.01 * (steps % 50)) if kind == "far below" else -1e-40 * (steps % 50)
    x = np.stack([x, x[::-1]]).astype(np.float32)
    d = x.astype(np.longdouble) - x.max(axis=-1, keepdims=True)
    e = np.where(d < 0, np.exp(d), 0)
    r, u, t = np.moveaxis(run("state", x), -1, 0)[3:6]
    for got, want in ((r, e), (u, e * d), (t, e * d * d)):
        np.testing.assert_allclose(got, want.sum(axis=-1).astype(np.float64), rtol=1e-5, atol=0)


def layouts(base):
    """The same numbers in different memory layouts; rows run along the last axis."""
    yield "contiguous", base
    yield "across", np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 0)), 0, -1)
    yield "in the middle", np.moveaxis(np.ascontiguousarray(np.moveaxis(base, -1, 1)), 1, -1)
    yield "every third", np.repeat(base, 3, axis=-1)[..., ::3]
    yield "backwards", base[..., ::-1].copy()[..., ::-1]
    yield "rows backwards", base[::-1].copy()[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 17, 40, 300])
def test_every_layout(n, dtype):
    base = logits((4, 21, n), dtype)
    for kind, x in layouts(base):
        np.testing.assert_array_equal(x, base)
        for name in OPERATIONS[:3]:
            assert_right(name, x, run(name, x))
        for got, want in zip(run("state", x).reshape(-1, 7), run("state", base).reshape(-1, 7), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-300, err_msg=kind)
        # The result in its own layout
        out = np.zeros((n, 21, 4), dtype).transpose(2, 1, 0)
        assert_right("softmax", x, run("softmax", x, out=out))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_several_threads_share(dtype):
    x = logits((2, 300_000), dtype)
    x[1, 12345] = 40.0
    for name in OPERATIONS[:3]:
        assert_right(name, x, run(name, x, threads=2))
    assert run("state", x, threads=2)[:, 0].tolist() == [300_000, 300_000]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("shape", [(1, 700_001), (3, 270_000), (2000, 8), (700, 130), (9, 20_000)])
def test_threads_change_no_bit(shape, name):
    x = logits(shape, np.float32)
    one = run(name, x, threads=1)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(run(name, x, threads=threads), one)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [5, 40, 1001, 70_000, 300_001])
@pytest.mark.parametrize("name", OPERATIONS[:2])
def test_in_place(name, n, dtype):
    x = logits((3, n), dtype)
    want = run(name, x)
    run(name, x, out=x)
    np.testing.assert_array_equal(x.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 24, 25, 100, 1037])
def test_special_values_stay_in_their_row(n, dtype):
    clean = logits((40, n), dtype)
    before = {name: run(name, clean) for name in OPERATIONS}
    others = np.arange(40) != 17
    for value in (np.nan, np.inf, -np.inf):
        for place in {0, n // 2, n - 1}:
            x = clean.copy()
            x[17, place] = value
            for name in OPERATIONS:
                got = run(name, x)
                np.testing.assert_array_equal(got[others], before[name][others])
            if value != -np.inf:
                assert np.isnan(run("softmax", x)[17].astype(np.float64)).all()
                lse = float(run("logsumexp", x)[17])
                assert np.isnan(lse) if np.isnan(value) else lse == np.inf
            elif n > 1:
                assert run("softmax", x)[17, place] == 0
                assert run("state", x)[17, 0] == n - 1
    x = clean.copy()
    x[17] = -np.inf
    assert np.isnan(run("softmax", x)[17].astype(np.float64)).all()
    assert run("logsumexp", x)[17] == -np.inf
    assert run("state", x)[17].tolist() == [0, 0, -np.inf, 0, 0, 0, 0]


def test_many_python_threads_at_once():
    arrays = [logits((300, 400), np.float32, seed=i) for i in range(6)]
    wants = [run("softmax", x) for x in arrays]
    wrong = []

    def work(x, want):
        wrong.extend(i for i in range(20) if not np.array_equal(run("softmax", x, threads=2), want))

    workers = [threading.Thread(target=work, args=pair) for pair in zip(arrays, wants, strict=True)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_python_goes_on_while_a_kernel_computes():
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    counter = threading.Thread(target=count)
    x = logits((64, 200_000), np.float64)
    out = np.empty_like(x)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1.0)  # far longer than the kernel: no switch is forced, so the GIL was released
    try:
        counter.start()
        before = counted[0]
        run("softmax", x, out=out)
        during = counted[0] - before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        counter.join()
    assert during > 1000


FORK = """
import os, sys
{first}
import numpy as np
from softscope import _engine
x = np.random.default_rng(0).standard_normal((500, 1000)).astype(np.float32)
t = np.ones(500)
want, got = np.empty_like(x), np.empty_like(x)
_engine.softmax(x, want, t, False, {threads})
child = os.fork()
if child == 0:
    _engine.softmax(x, got, t, False, 2)
    os._exit(0 if np.array_equal(got, want) else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are Unix's")
@pytest.mark.parametrize("threads", [1, 2])  # whether the parent has used its threads before the fork
@pytest.mark.parametrize("first", ["", "import torch; torch.softmax(torch.ones(1000, 1000), -1)"])
def test_a_child_computes_after_a_fork(first, threads, tmp_path):
    import subprocess

    script = tmp_path / "fork.py"
    script.write_text(FORK.format(first=first, threads=threads))
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, script], timeout=120, check=False, env=environment)
    assert done.returncode == 0


LATE = """
import os, sys
import torch; torch.softmax(torch.ones(1000, 1000), -1)
child = os.fork()
if child == 0:
    import numpy as np
    from softscope import _engine
    x = np.zeros((500, 1000), np.float32)
    out = np.empty_like(x)
    _engine.softmax(x, out, np.ones(500), False, 2)
    os._exit(0 if (out == np.float32(0.001)).all() else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are Unix's")
def test_a_child_that_imports_the_engine_after_the_fork_computes(tmp_path):
    import subprocess

    script = tmp_path / "late.py"
    script.write_text(LATE)
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, script], timeout=60, check=False, env=environment)
    assert done.returncode == 0


def test_what_would_crash_is_refused():
    x = np.zeros((2, 3), np.float32)
    t = np.ones(2)
    for wrong in (np.zeros((2, 4), np.float32), np.zeros((3, 2), np.float32), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="do not fit"):
            _engine.softmax(x, wrong, t, False, 1)
    with pytest.raises(ValueError, match="do not fit"):
        _engine.softmax(x, x.copy(), np.ones(3), False, 1)
    with pytest.raises(ValueError, match="do not fit"):
        _engine.state(x, np.zeros((2, 6)), t, False, 1)
    with pytest.raises(TypeError, match="float32, float64"):
        _engine.softmax(np.zeros((2, 3), np.int32), np.zeros((2, 3), np.int32), t, False, 1)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _engine.softmax(x, frozen, t, False, 1)
