"""Attention, its partition and its gradient readings, against high-precision loops, for every option."""

import numpy as np
import pytest
from mpmath import mp

import softscope as ss
from exactness import heads
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import attention
from oracle.attention import Options
from softscope import bounds

ROWS = [(head, query) for head in range(heads.HEADS) for query in range(heads.QUERIES)]
SOFT = [name for name, options in heads.PROBLEMS.items() if options.get("alpha", 1.0) == 1.0]
SPARSE = [name for name in heads.PROBLEMS if name not in SOFT]

everywhere = pytest.mark.parametrize("backend", BACKENDS)
both = pytest.mark.parametrize("dtype", ["float32", "float64"])


def test_there_are_problems_of_both_kinds() -> None:
    assert len(SOFT) > 10
    assert len(SPARSE) > 2


@everywhere
@both
@pytest.mark.parametrize("name", heads.PROBLEMS)
def test_output(backend: str, dtype: str, name: str) -> None:
    (q, k, v, _), options = heads.passed(name, backend, dtype)
    got = floats(ss.attention(q, k, v, **options))
    # Values are of size 1 and logits of size 10: the rounding of the products is well below this.
    tolerance = 4 * bounds.readings(dtype)
    with Comparison() as compare:
        for head, query in ROWS:
            for d, want in enumerate(heads.wanted_outputs(name, head)[query]):
                compare.check(f"{name}: output {head, query, d}", name, got[head][query][d], want, tolerance)


FIELDS = (
    "lse",
    "entropy",
    "collision",
    "peak",
    "variance",
    "jacobian_trace",
    "effective_support",
    "sharpness",
)


@everywhere
@both
@pytest.mark.parametrize("name", SOFT)
def test_partition(backend: str, dtype: str, name: str) -> None:
    (q, k, v, _), options = heads.passed(name, backend, dtype)
    _, whole = ss.attention(q, k, v, return_partition=True, **options)
    picked = ss.attention_partition(q, k, rows=[2, 0], **options)
    with Comparison() as compare:
        for got, positions, rows in (
            (whole, range(heads.QUERIES), "all"),
            (ss.attention_partition(q, k, **options), range(heads.QUERIES), "no v"),
            (picked, (2, 0), "rows"),
        ):
            for head in range(heads.HEADS):
                for at, query in enumerate(positions):
                    want = heads.wanted_partition(name, head, query)
                    where = f"{name}, {rows}, head {head}, query {query}"
                    compare.check(f"{where}: count", name, floats(got.count)[head][at], want.count, 0)
                    top = floats(got.max_logit)[head][at]
                    compare.check(f"{where}: max_logit", name, top, want.max_logit, 40 * bounds.readings(dtype))
                    for field in FIELDS:
                        _compare_reading(
                            compare,
                            f"{where}: {field}",
                            floats(getattr(got, field))[head][at],
                            want,
                            field,
                            dtype,
                        )


def _compare_reading(compare: Comparison, where: str, value: float, want: object, field: str, dtype: str) -> None:
    """A reading of logits that were themselves computed: an error relative to their size is allowed."""
    exact, lse = getattr(want, field), want.lse
    size = 1 + (abs(float(want.max_logit)) if mp.isfinite(lse) else 0)
    relative = bounds.readings(dtype) * size
    if field == "variance" and want.variance > 0:
        relative = bounds.variance(float(want.mean), float(want.variance), dtype) * size
    scale = abs(exact) if mp.isfinite(exact) and field not in ("lse", "sharpness") else 1
    compare.check(where, where, value, exact, relative * scale)


@everywhere
@both
@pytest.mark.parametrize("name", SPARSE)
def test_support(backend: str, dtype: str, name: str) -> None:
    (q, k, v, _), options = heads.passed(name, backend, dtype)
    _, got = ss.attention(q, k, v, return_partition=True, **options)
    with Comparison() as compare:
        for head, query in ROWS:
            for field, want in heads.wanted_support(name, head, query).items():
                value = floats(getattr(got, field))[head][query]
                tolerance = 0 if field == "size" else 10 * bounds.readings(dtype)
                compare.check(f"{name}: {field} {head, query}", name, value, want, tolerance)


@everywhere
@pytest.mark.parametrize("name", heads.PROBLEMS)
def test_gradient_readings(backend: str, name: str) -> None:
    (q, k, v, grad_output), options = heads.passed(name, backend, "float64")
    got = ss.gradient_readings(q, k, v, grad_output, **options)
    few = ss.gradient_readings(q, k, v, grad_output, rows=[1], **options)
    with Comparison() as compare:
        for head, query in ROWS:
            want = heads.wanted_gradients(name, head, query)
            where = f"{name}, head {head}, query {query}"
            for field in ("transmission", "advantage", "regret_ratio", "demand", "supply"):
                value, exact = floats(getattr(got, field))[head][query], getattr(want, field)
                if field in ("demand", "supply") and mp.isnan(want.transmission):
                    continue  # such rows are skipped: nobody reads what is there
                scale = 1 if field in ("advantage", "regret_ratio") else max(1e-3, abs(exact))
                if mp.isnan(exact):
                    scale = 1
                compare.check(f"{where}: {field}", name, value, exact, 20 * bounds.readings("float64") * scale)
                if query == 1:
                    value = floats(getattr(few, field))[head][0]
                    compare.check(
                        f"{where}, rows: {field}", name, value, exact, 20 * bounds.readings("float64") * scale
                    )
            if not mp.isnan(want.transmission):
                assert bool(floats(got.blocked)[head][query]) == want.blocked, f"{where}: blocked"


@everywhere
def test_gradient_readings_of_blocked_rows(backend: str) -> None:
    """Near one-hot the supply is as small as the free weight, and keeps its relative accuracy."""
    rng = np.random.default_rng(9)
    q, k, v, g = ((rng.normal(size=(1, n, w)) * 64).round() / 64 for n, w in ((4, 4), (6, 4), (6, 3), (4, 3)))
    scale = 8.0
    got = ss.gradient_readings(*(array(a, "float64", backend) for a in (q, k, v, g)), scale=scale)
    raw = attention.products(q[0].tolist(), k[0].tolist(), scale)
    seen = set()
    with Comparison() as compare:
        for i in range(4):
            want = heads.gradients.gradient_readings(i, raw[i], v[0].tolist(), g[0][i].tolist(), Options())
            seen.add(want.blocked)
            for field in ("supply", "transmission"):
                value, exact = floats(getattr(got, field))[0][i], getattr(want, field)
                compare.relative(f"query {i}: {field}", [float(s) for s in raw[i]], value, exact, 1e-12 * 40)
            assert bool(floats(got.blocked)[0][i]) == want.blocked
    assert seen == {True, False}, "the rows must be of both kinds"


@everywhere
@both
@pytest.mark.parametrize("name", ["plain", "causal", "boolean mask", "additive mask"])
def test_additive_attention(backend: str, dtype: str, name: str) -> None:
    (q, k, v, _), options = heads.passed(name, backend, dtype)
    rng = np.random.default_rng(6)
    w_q, w_k, v_a = ((rng.normal(size=s) * 32).round() / 32 for s in ((heads.DEPTH, 6), (heads.DEPTH, 6), (6,)))
    weights = [array(w, dtype, backend) for w in (w_q, w_k, v_a)]
    got = floats(ss.additive_attention(q[0], k[0], v[0], *weights, **options))
    raw = attention.additive_products(
        heads.given().q[0].tolist(), heads.given().k[0].tolist(), w_q.tolist(), w_k.tolist(), v_a.tolist()
    )
    problem = {key: o.tolist() if key == "mask" else o for key, o in heads.PROBLEMS[name].items()}
    want = attention.outputs(raw, heads.given().v[0].tolist(), Options(**problem))
    with Comparison() as compare:
        for i, line in enumerate(want):
            for d, exact in enumerate(line):
                compare.check(f"{name}: output {i, d}", name, got[i][d], exact, 4 * bounds.readings(dtype))
