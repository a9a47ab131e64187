"""A row has the same bits however its batch is split: docs/exactness.md, "Same bits", says where, and this tests it.

A few thousand random splits in every run, and 10⁵ for each function in the slow tier.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import softscope as ss
from softscope import _engine, _threads

Array = np.ndarray[Any, Any]
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
FUNCTIONS = ("softmax", "log_softmax", "logsumexp", "state", "entmax")
LAYOUTS = ("contiguous", "padded", "gaps", "rows far apart")
LONG = (5_000, 2**18 + 1, 300_000)  # beyond the stretch, and where threads share a row
READINGS = ("lse", "entropy", "collision", "peak", "max_logit", "variance", "count")


def call(name: str, x: Array, out: Array, temperature: Any, alpha: Any, threads: int) -> Array:
    numbers = np.empty((len(x), 2))
    numbers[:, 0], numbers[:, 1] = temperature, alpha
    bits = [a.view(np.uint16) if a.dtype.itemsize == 2 else a for a in (x, out)]
    given = numbers if name == "entmax" else np.ascontiguousarray(numbers[:, 0])
    getattr(_engine, name)(*bits, given, x.dtype == ml_dtypes.bfloat16, threads)
    return out


def empty_result(name: str, x: Array) -> Array:
    shape = {"logsumexp": x.shape[:1], "state": (len(x), 7)}.get(name, x.shape)
    return np.empty(shape, np.float64 if name == "state" else x.dtype)


def laid_out(layout: str, rows: Array) -> Array:
    """The same rows elsewhere in memory; not side by side, where another kernel takes them."""
    count, n = rows.shape
    if layout == "contiguous":
        return rows.copy()
    if layout == "padded":
        there = np.zeros((count, n + 3), rows.dtype)[:, :n]
    elif layout == "gaps":
        there = np.zeros((count, 2 * n), rows.dtype)[:, ::2]
    else:
        there = np.zeros((n, 2 * count), rows.dtype).T[::2]
    there[...] = rows
    return there


def random_rows(rng: np.random.Generator, count: int, n: int) -> Array:
    """Rows of any spread; some near one-hot, some with NaN or an infinity, which their neighbours must not feel."""
    x = rng.standard_normal((count, n)) * 10 ** rng.uniform(-2, 2, (count, 1))
    x[rng.random(count) < 0.1, 0] += 60
    if rng.random() < 0.1:
        x[rng.integers(count), rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf])
    with np.errstate(over="ignore"):
        return x.astype(DTYPES[rng.integers(4)])


def same(a: Array, b: Array) -> bool:
    """Bit for bit, but for which NaN it is."""
    a, b = (np.where(values != values, np.ones((), values.dtype) * np.nan, values) for values in (a, b))
    return a.tobytes() == b.tobytes()


def split_rows(name: str, splits: int, seed: int) -> int:
    """Compare rows of random batches with the same rows alone; return how many were compared."""
    rng, compared = np.random.default_rng(seed), 0
    while compared < splits:
        long = rng.random() < 0.002
        n = int(rng.choice(LONG)) if long else int(rng.integers(1, 301))
        x = random_rows(rng, int(rng.integers(1, 20 if long else 201)), n)
        temperature = rng.choice([np.ones(1), 10 ** rng.uniform(-1, 1, 1)]) * np.ones(len(x))
        alpha = rng.choice([1.0, 1.3, 1.5, 2.0, 3.0], len(x) if rng.random() < 0.3 else 1) * np.ones(len(x))
        layout, threads = str(rng.choice(LAYOUTS)), int(rng.integers(1, 3))
        together = call(name, laid_out(layout, x), empty_result(name, x), temperature, alpha, threads)
        for i in rng.integers(len(x), size=min(len(x), 10)):
            one = x[i : i + 1].copy()
            alone = call(name, one, empty_result(name, one), temperature[i], alpha[i], 1)
            where = f"{name} {x.dtype}, row {i} of {x.shape}, {layout}, {threads} threads, T {temperature[i]}"
            assert same(alone[0], together[i]), f"{where}, alpha {alpha[i]}, seed {seed}, after {compared}"
            compared += 1
    return compared


def attend(q: Array, k: Array, v: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    output, partition = ss.attention(q, k, v, return_partition=True, **options)
    return output, np.stack([np.asarray(getattr(partition, name), float) for name in READINGS], -1)


def random_attention(rng: np.random.Generator) -> tuple[Array, Array, Array, dict[str, Any]]:
    dtype, heads, group = DTYPES[rng.integers(4)], int(rng.integers(1, 4)), int(rng.integers(1, 4))
    m = int(rng.choice([rng.integers(1, 300), rng.integers(300, 700), rng.integers(1000, 5000)], p=[0.6, 0.3, 0.1]))
    n = int(rng.integers(1, 20 if m > 999 else 200))
    batch, d, dv = rng.integers(1, [4, 40, 40])
    q = rng.standard_normal((batch, heads * group, n, d)).astype(dtype)
    k = (rng.standard_normal((batch, heads, m, d)) * rng.choice([0.5, 3])).astype(dtype)
    v = rng.standard_normal((batch, heads, m, dv)).astype(dtype)
    options: dict[str, Any] = {"causal": bool(rng.random() < 0.6), "query_start": max(0, m - n)}
    if rng.random() < 0.2:
        options["softcap"] = 5.0
    if rng.random() < 0.2:
        options["window"] = (int(rng.integers(m + 1)), None)
    return q, k, v, options


def part_of_attention(
    rng: np.random.Generator, q: Array, k: Array, v: Array, options: dict[str, Any]
) -> tuple[str, tuple[slice, ...], tuple[Array, Array]]:
    """The same attention in another split: what it is called, which rows it holds, and what came out."""
    group, n = q.shape[1] // k.shape[1], q.shape[2]
    kind = str(rng.choice(["batch", "head", "layout", "chunk", "cache", "mask"]))
    rows: tuple[slice, ...] = (slice(None),) * 3
    options = dict(options)
    if kind == "batch":
        i = int(rng.integers(len(q)))
        rows = (slice(i, i + 1), slice(None), slice(None))
        k, v = k[i : i + 1], v[i : i + 1]
    elif kind == "head":
        j = int(rng.integers(k.shape[1]))
        rows = (slice(None), slice(j * group, (j + 1) * group), slice(None))
        k, v = k[:, j : j + 1], v[:, j : j + 1]
    elif kind == "layout":
        q, k, v = (np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) for a in (q, k, v))
    elif kind in ("chunk", "cache"):
        fewest = 4 // group + 1  # fewer rows of a key head are decoding, which another kernel does
        if n > fewest:
            begin = int(rng.integers(n - fewest + 1))
            end = int(rng.integers(begin + fewest, n + 1))
            rows = (slice(None), slice(None), slice(begin, end))
            options["query_start"] += begin
            if kind == "cache" and options["causal"]:  # without the keys that come later
                m = options["query_start"] + end - begin
                k, v = k[:, :, :m], v[:, :, :m]
    else:
        more = int(rng.integers(1, 300))
        k, v = (np.concatenate([a, np.full_like(a[:, :, :1], 7).repeat(more, 2)], 2) for a in (k, v))
        options["mask"] = np.arange(k.shape[2]) < k.shape[2] - more
    return kind, rows, attend(q[rows], k, v, options)


def split_attention(splits: int, seed: int) -> int:
    rng, compared = np.random.default_rng(seed), 0
    before = _threads.count
    try:
        while compared < splits:
            q, k, v, options = random_attention(rng)
            _threads.count = 1
            whole = attend(q, k, v, options)
            for _ in range(8):
                _threads.count = int(rng.integers(1, 3))
                kind, rows, found = part_of_attention(rng, q, k, v, options)
                for what, a, b in zip(("output", "partition"), whole, found, strict=True):
                    where = f"{what}, {kind} {rows}, {q.dtype}, q {q.shape}, k {k.shape}, {options}"
                    assert same(a[rows], b), f"{where}, seed {seed}, after {compared}"
                compared += 1
    finally:
        _threads.count = before
    return compared


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows(name):
    assert split_rows(name, 2_000, seed=1) >= 2_000


def test_attention():
    assert split_attention(1_500, seed=1) >= 1_500


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_a_hundred_thousand_times(name):
    assert split_rows(name, 100_000, seed=2) >= 100_000


@pytest.mark.slow
def test_attention_a_hundred_thousand_times():
    assert split_attention(100_000, seed=2) >= 100_000


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_in_a_small_and_in_a_large_batch(name, dtype):
    """From 16 rows on, threads take whole rows; before that, they share each."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((16, 2**18 + 5)).astype(dtype)
    many = call(name, x, empty_result(name, x), 0.7, 1.5, 2)
    few = call(name, x[3:5].copy(), empty_result(name, x[3:5]), 0.7, 1.5, 2)
    gaps = call(name, laid_out("gaps", x[3:5]), empty_result(name, x[3:5]), 0.7, 1.5, 1)
    assert same(many[3:5], few)
    assert same(many[3:5], gaps)


def test_a_neighbour_near_one_hot_changes_nothing():
    """Rows of a tile are summed in one of two ways. Where maximum and log z cancel, a float32 shows which."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4_000, 4)).astype(np.float32)
    x -= np.log(np.exp(x).sum(1, keepdims=True))
    plain = call("logsumexp", x, empty_result("logsumexp", x), 1.0, 1.0, 1)
    x[::8, 0] += 60
    beside = call("logsumexp", x, empty_result("logsumexp", x), 1.0, 1.0, 1)
    others = np.arange(len(x)) % 8 != 0
    assert same(plain[others], beside[others])
