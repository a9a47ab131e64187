"""Attention kernels: sizes around every block, all dtypes and options, against float64. test_isa.py runs this, too."""

import ml_dtypes
import numpy as np
import pytest

import softscope as ss
from engine import dense
from softscope import _engine, bounds

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
# heads, kv_heads, n, m, d, dv: below, at and above a strip of rows, a tile and a block of keys, a task of rows.
SIZES = [
    (1, 1, 1, 1, 1, 1), (1, 1, 1, 300, 64, 64), (2, 1, 1, 257, 7, 130), (4, 2, 2, 90, 33, 5), (3, 3, 5, 16, 8, 8),
    (2, 2, 6, 256, 16, 16), (2, 1, 7, 255, 17, 24), (1, 1, 13, 257, 64, 80), (2, 2, 61, 520, 80, 64),
    (1, 1, 200, 130, 5, 3), (6, 2, 50, 64, 12, 12),
]  # fmt: skip


def random(seed, *shapes, dtype="float32", spread=1.0):
    rng = np.random.default_rng(seed)
    return [(spread * rng.normal(size=shape)).astype(DTYPES[dtype]) for shape in shapes]


def problem(size, seed=0, dtype="float32", batch=(2,), spread=1.0):
    heads, kv_heads, n, m, d, dv = size
    return random(
        seed, (*batch, heads, n, d), (*batch, kv_heads, m, d), (*batch, kv_heads, m, dv), dtype=dtype, spread=spread
    )


def close(got, want, tolerance, what=""):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, what
    with np.errstate(invalid="ignore"):  # −inf next to −inf
        error = np.abs(got - want)
    wrong = ~((error <= tolerance) | (got == want) | (np.isnan(got) & np.isnan(want)))
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.any() else None
    assert at is None, f"{what} at {at}: got {got[at]!r}, wanted {want[at]!r}, off {error[at]:.3g} of {tolerance!r}"


def check(q, k, v, dtype, **options):
    """Output and statistics against float64, within the family's bounds times 1 + the largest |logit|."""
    wanted = dense.attention(q, k, v, **options)
    output, p = ss.attention(q, k, v, return_partition=True, **options)
    assert output.dtype == q.dtype
    seen = wanted.logits[np.isfinite(wanted.logits)]
    size = 1.0 + float(np.abs(seen).max(initial=0.0))
    values = float(np.abs(v.astype(np.float64)).max())
    u = bounds.unit_roundoff(dtype)
    computed = 8 * size * bounds.unit_roundoff("float64" if dtype == "float64" else "float32")
    close(output, wanted.output, values * (computed * 2 + 2 * u), "output")
    relative = bounds.readings("float64" if dtype == "float64" else "float32") * size
    for name, want in dense.readings(wanted.logits).items():
        got = getattr(p, name)
        some = p.count > 0
        scale = np.maximum(np.abs(want), 1.0 if name in ("lse", "variance", "entropy") else 0.0)
        tolerance = 0.0 if name == "count" else relative * np.where(np.isfinite(scale), scale, 1.0)
        close(np.where(some, got, 0.0), np.where(some, want, 0.0), tolerance, name)
    visible = np.where(wanted.logits > -np.inf, wanted.scores, -np.inf).max(axis=-1)
    close(p.max_logit, visible, relative, "max_logit")
    alone = ss.attention_partition(q, k, **options)
    for name in ("count", "lse", "entropy", "jacobian_trace", "max_logit"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(p, name))
    np.testing.assert_array_equal(ss.attention(q, k, v, **options), output)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size(size, dtype):
    check(*problem(size, dtype=dtype), dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 9, 100])
def test_many_keys_are_shared_among_threads(rows, causal):
    check(*problem((1, 1, rows, 5000, 24, 24), batch=()), "float32", causal=causal, query_start=4000)


OPTIONS = {
    "dot product": {"scale": 1.0},
    "scale per head": {"scale": np.array([0.01, 3.0, -1.0, 0.0])},
    "causal": {"causal": True},
    "causal, later": {"causal": True, "query_start": 250},
    "causal, before the first key": {"causal": True, "query_start": -10},
    "window": {"window": (30, 5), "query_start": 200},
    "window far away": {"window": (2, 2), "query_start": 10_000},
    "soft cap": {"softcap": 2.0, "scale": 1.0},
    "soft cap, causal": {"softcap": 0.5, "causal": True, "query_start": 3},
    "sink": {"sink": np.array([-5.0, 0.0, 3.0, 200.0])},
    "all": {"softcap": 30.0, "causal": True, "query_start": 100, "window": (150, 2), "sink": 1.0, "scale": 0.7},
}
BIG = (4, 2, 37, 300, 20, 12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("size", [BIG, (4, 2, 2, 300, 20, 12)])
def test_every_option(option, dtype, size):
    check(*problem(size, dtype=dtype), dtype, **OPTIONS[option])


def masks(shape):
    rng = np.random.default_rng(3)
    shown = rng.random(shape) < 0.6
    bias = rng.normal(size=shape)
    yield "boolean", shown
    for name in ("float16", "float32", "float64"):
        added = np.where(shown, bias, np.finfo(name).min).astype(name)
        yield name, added
        yield f"{name} with −inf", np.where(shown, added, -np.inf).astype(name)


@pytest.mark.parametrize("kind", [name for name, _ in masks((1,))])
@pytest.mark.parametrize("axes", ["bhnm", "11nm", "b11m", "1hn1", "bh1m", "m"])
@pytest.mark.parametrize("option", ["causal", "soft cap", "sink"])
def test_every_mask(kind, axes, option):
    heads, _, n, m, *_ = BIG
    sizes = {"b": 2, "h": heads, "n": n, "m": m, "1": 1}
    mask = dict(masks(tuple(sizes[a] for a in axes)))[kind]
    check(*problem(BIG), "float32", mask=mask, **OPTIONS[option])


def test_a_mask_need_not_be_contiguous():
    q, k, v = problem(BIG)
    shown = np.random.default_rng(1).random((300, 37)) < 0.5
    check(q, k, v, "float32", mask=shown.T)
    check(q, k, v, "float32", mask=np.where(shown, 0.0, -np.inf).astype(np.float32).T[::-1])


def test_models_views_are_taken_as_they_are():
    q, k, v = (np.ascontiguousarray(np.swapaxes(x, 1, 2)) for x in problem((4, 4, 70, 70, 16, 16)))
    views = [np.swapaxes(x, 1, 2) for x in (q, k, v)]
    got = ss.attention(*views, causal=True)
    np.testing.assert_array_equal(got, ss.attention(*map(np.ascontiguousarray, views), causal=True))
    gaps = [np.repeat(x, 2, axis=-1)[..., ::2] for x in views]
    np.testing.assert_array_equal(got, ss.attention(*gaps, causal=True))
    back = [x[:, :, ::-1] for x in views]
    close(ss.attention(*back), ss.attention(*map(np.ascontiguousarray, back)), 0.0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [(1, 1, 300, 900, 16, 16), (2, 1, 1, 9000, 8, 8)])
def test_the_same_bits_whatever_the_number_of_threads(size, causal):
    q, k, v = problem(size, batch=())
    options = {"causal": causal, "query_start": 700, "return_partition": True}
    before = ss.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 8):
            ss.set_num_threads(threads)
            results.append(ss.attention(q, k, v, **options))
    finally:
        ss.set_num_threads(before)
    for output, p in results[1:]:
        np.testing.assert_array_equal(output, results[0][0])
        np.testing.assert_array_equal(p.entropy, results[0][1].entropy)


@pytest.mark.parametrize("rows", [2, 40])
def test_laws(rows):
    q, k, v = problem((4, 2, rows, 400, 16, 8), dtype="float64")
    output, p = ss.attention(q, k, v, return_partition=True)
    order = np.random.default_rng(0).permutation(400)
    close(ss.attention(q, k[:, :, order], v[:, :, order]), output, 1e-13, "permuted keys")
    parts = [ss.attention_partition(q, k[:, :, part]) for part in (slice(0, 130), slice(130, 131), slice(131, None))]
    merged = parts[2].merge(parts[0]).merge(parts[1])
    for name in ("lse", "entropy", "collision", "peak", "variance", "jacobian_trace", "count"):
        close(getattr(merged, name), getattr(p, name), 1e-11, f"merged {name}")
    shown = np.arange(400) <= 300 + np.arange(rows)[:, None]
    close(
        ss.attention(q, k, v, causal=True, query_start=300),
        ss.attention(q, k, v, mask=shown),
        1e-14,
        "causal as a mask",
    )
    close(ss.attention(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1)), output, 0.0, "groups")
    far = np.concatenate([q, np.ones_like(q[..., :1])], -1), np.concatenate([k, np.full_like(k[..., :1], 3e4)], -1)
    close(ss.attention(*far, v, scale=0.25), output, 1e-9, "a shift of all logits")


@pytest.mark.parametrize("rows", [3, 40])
def test_nan_stays_where_it_is(rows):
    q, k, v = problem((2, 2, rows, 300, 16, 8))
    clean = ss.attention(q, k, v, causal=True, query_start=200)
    broken = q.copy()
    broken[0, 1, 2, 5] = np.nan
    got, p = ss.attention(broken, k, v, causal=True, query_start=200, return_partition=True)
    where = np.zeros(got.shape[:-1], bool)
    where[0, 1, 2] = True
    assert np.isnan(got[where]).all()
    np.testing.assert_array_equal(got[~where], clean[~where])
    assert (np.isnan(p.entropy) == where).all()
    assert (np.isnan(p.max_logit) == where).all()
    for array in (0, 1):  # a key, then a value: only rows that see it change
        changed = [k.copy(), v.copy()]
        changed[array][0, 0, 202, 3] = np.nan if array == 0 else np.inf
        got = ss.attention(q, *changed, causal=True, query_start=200)
        seen = np.zeros(got.shape, bool)
        seen[0, 0, 2:, slice(None) if array == 0 else 3] = True
        assert np.isnan(got[seen]).all()
        np.testing.assert_array_equal(got[~seen], clean[~seen])


@pytest.mark.parametrize("rows", [1, 7])
def test_infinite_logits(rows):
    q, k, v = problem((1, 1, rows, 20, 4, 4), batch=())
    k = k.copy()
    k[0, 3, :], q[0, :, :] = np.inf, np.abs(q[0])
    output, p = ss.attention(q, k, v, return_partition=True)
    assert np.isnan(output).all()
    assert (p.lse == np.inf).all()
    assert (p.max_logit == np.inf).all()
    assert np.isnan(p.entropy).all()
    k[0, 3, :] = -np.inf
    output, p = ss.attention(q, k, v, return_partition=True)
    assert (p.count == 19).all()
    others = [np.delete(x, 3, axis=1) for x in (k, v)]
    close(output, ss.attention(q, *others), 1e-6)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7])
def test_a_value_that_is_not_finite_reaches_only_rows_that_see_its_key(rows):
    """Keys come in blocks of 256: the second block has keys that only some of the few queries see."""
    q, k, v = problem((1, 1, rows, 262, 4, 4), batch=())
    clean = ss.attention(q, k, v, causal=True, query_start=255)
    v = v.copy()
    v[0, 256] = np.inf  # seen from the second query on
    output = ss.attention(q, k, v, causal=True, query_start=255)
    close(output[0, :1], clean[0, :1], 1e-6)
    assert not np.isfinite(output[0, 1:]).any()


def options(**changed):
    given = {
        "scale": np.ones(2), "positions": np.arange(3), "left": 9, "right": 9, "mask": None, "brain_mask": False,
        "softcap": 0.0, "sink": None,
    }  # fmt: skip
    return _engine.AttentionOptions(**(given | changed))


def test_what_would_crash_is_refused():
    q = np.zeros((1, 2, 3, 4), np.float32)
    right = {
        "q": q, "k": q, "v": q, "out": np.empty_like(q), "state": np.empty((1, 2, 3, 8)), "options": options(),
        "brain": False, "statistics": True, "threads": 1,
    }  # fmt: skip
    _engine.attention(**right)
    for name, wrong in [
        ("k", q[:, :1, :, :3]), ("v", q[:, :, :2]), ("out", right["out"][:, :1]), ("state", right["state"][..., :7]),
        ("options", options(scale=np.ones(3))), ("options", options(sink=np.ones(1))),
        ("options", options(positions=np.arange(2))), ("options", options(mask=np.ones((1, 2, 3, 4), np.float32))),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            _engine.attention(**(right | {name: wrong}))


def test_readings_that_would_crash_are_refused():
    q = np.zeros((1, 2, 3, 4), np.float32)
    right = {
        "q": q, "k": q, "v": q, "grad": q, "key_lengths": np.ones((1, 2, 3), np.float32),
        "numbers": np.empty((1, 2, 3, 16)), "weights": np.empty((1, 2, 3, 3), np.float32), "options": options(),
        "brain": False, "threads": 1,
    }  # fmt: skip
    _engine.read_attention(**right)
    for name, wrong in [
        ("grad", q[..., :3]), ("grad", None), ("v", None), ("grad", q.astype(np.float64)),
        ("key_lengths", np.ones((1, 2, 4), np.float32)), ("key_lengths", np.ones((1, 2, 3))),
        ("numbers", np.empty((1, 2, 3, 15))), ("weights", np.empty((1, 2, 3, 4), np.float32)),
        ("weights", np.empty((1, 2, 3, 3))),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            _engine.read_attention(**(right | {name: wrong}))
