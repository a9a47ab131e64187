"""Kernels of sparse attention: sizes, dtypes, options and alphas against float64. test_isa.py runs this, too."""

import math

import numpy as np
import pytest
import torch

import softscope as ss
from engine import thresholds
from softscope import _engine, bounds

# heads, kv_heads, n, m, d, dv: below, at and above a strip of 6 rows, a tile of 32 keys, a block of 256, a group of 48.
SIZES = [
    (1, 1, 1, 1, 1, 1), (2, 1, 1, 257, 7, 130), (4, 2, 2, 90, 33, 5), (3, 3, 5, 32, 8, 8), (2, 2, 6, 256, 16, 16),
    (2, 1, 7, 255, 17, 24), (1, 1, 13, 33, 64, 80), (2, 2, 61, 520, 80, 64), (1, 1, 200, 130, 5, 3),
]  # fmt: skip
ALPHAS = (1.0001, 1.3, 1.5, 2.0, 3.0)
DTYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64"}


def problem(size, dtype, seed=0, batch=(2,), spread=1.0):
    heads, kv_heads, n, m, d, dv = size
    generator = torch.Generator().manual_seed(seed)
    shapes = ((heads, n, d), (kv_heads, m, d), (kv_heads, m, dv))
    return [(spread * torch.randn(*batch, *s, generator=generator, dtype=torch.float64)).to(dtype) for s in shapes]


def close(got, want, tolerance, what):
    got, want = got.double(), want.double()
    assert got.shape == want.shape, what
    wrong = ~(((got - want).abs() <= tolerance) | (got.isnan() & want.isnan()))
    if wrong.any():
        at = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(f"{what} at {at}: got {got[at]!r}, wanted {want[at]!r}, tolerance {tolerance!r}")


def check(q, k, v, alpha, **options):
    """Output and statistics against float64.

    A logit is off by a few roundings times its size, and a weight moves by at most `bounds.moved` for that.
    """
    alphas = torch.as_tensor(alpha, dtype=torch.float64).expand(q.shape[-3])
    wide = {n: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for n, x in options.items()}
    x = thresholds.logits(q.double(), k.double(), **wide)
    wanted = thresholds.attention(q.double(), k.double(), v.double(), alpha=alphas, **wide)
    output, found = ss.attention(q, k, v, alpha=alpha, return_partition=True, **options)
    assert output.dtype == q.dtype
    assert isinstance(found, ss.Support)
    seen = x[x > -math.inf]
    size = 1.0 + float(seen.abs().max()) if seen.numel() else 1.0
    u = bounds.unit_roundoff("float64" if q.dtype == torch.float64 else "float32")
    step = 8.0 * size * u * math.sqrt(q.shape[-1])
    moved = max(bounds.moved(step, float(a)) for a in alphas)
    values = float(v.double().abs().max())
    own = bounds.unit_roundoff(DTYPES[q.dtype])
    close(output, wanted, 4.0 * values * moved + 2.0 * values * own, "output")
    np.testing.assert_array_equal(ss.attention(q, k, v, alpha=alpha, **options).double(), output.double())
    alone = ss.attention_partition(q, k, alpha=alpha, **options)
    sparse = alphas > 1.0
    want = thresholds.support(x[..., sparse, :, :], alphas[sparse])
    for name, value in want.items():
        got = getattr(found, name)
        np.testing.assert_array_equal(getattr(alone, name), got)
        if name in ("tau", "peak", "collision", "entropy"):
            some = want["size"] > 0
            tolerance = 8.0 * size * step if name == "tau" else 8.0 * moved * (1.0 + value.abs()) * q.shape[-2] ** 0.5
            close(got[..., sparse, :][some], value[some], tolerance if name == "tau" else tolerance[some], name)
    if q.dtype == torch.float64 and float(alphas.max()) <= 2.0:
        exact = want["jacobian_trace"]
        close(found.jacobian_trace[..., sparse, :], torch.where(want["size"] > 0, exact, math.nan), 1e-6, "trace")
        close(found.size[..., sparse, :], want["size"], 0.0, "size")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.3])
def test_every_size(size, dtype, alpha):
    check(*problem(size, dtype), alpha)


BIG = (4, 2, 37, 300, 20, 12)
OPTIONS = {
    "plain": {},
    "dot product": {"scale": 1.0},
    "scale per head": {"scale": torch.tensor([0.01, 3.0, -1.0, 0.0], dtype=torch.float64)},
    "causal": {"causal": True},
    "causal, later": {"causal": True, "query_start": 250},
    "causal, before the first key": {"causal": True, "query_start": -10},
    "window": {"window": (30, 5), "query_start": 200},
    "window far away": {"window": (2, 2), "query_start": 10_000},
    "soft cap": {"softcap": 2.0, "scale": 1.0},
    "all": {"softcap": 30.0, "causal": True, "query_start": 100, "window": (150, 2), "scale": 0.7},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("alpha", [*ALPHAS, "per head"])
def test_every_option(option, dtype, alpha):
    alpha = torch.tensor([1.0, 1.5, 2.5, 1.2], dtype=torch.float64) if alpha == "per head" else alpha
    check(*problem(BIG, dtype), alpha, **OPTIONS[option])


@pytest.mark.parametrize("spread", [0.01, 4.0])
@pytest.mark.parametrize("alpha", [1.05, 1.5, 1.9, 2.0])
def test_nearly_uniform_and_nearly_one_hot(alpha, spread):
    for dtype in (torch.float32, torch.float64):
        check(*problem((2, 2, 20, 700, 16, 16), dtype, spread=spread), alpha)


@pytest.mark.parametrize("axes", ["bhnm", "11nm", "b11m", "1hn1", "m"])
@pytest.mark.parametrize("kind", ["boolean", "float32", "float64"])
def test_every_mask(kind, axes):
    sizes = {"b": 2, "h": 4, "n": 37, "m": 300, "1": 1}
    shape = tuple(sizes[a] for a in axes)
    generator = torch.Generator().manual_seed(3)
    mask = torch.rand(shape, generator=generator) < 0.6
    if kind != "boolean":
        mask = torch.randn(shape, generator=generator).to(getattr(torch, kind)).masked_fill(~mask, -math.inf)
    check(*problem(BIG, torch.float32), 1.5, mask=mask, causal=True, query_start=200)
    check(*problem(BIG, torch.float64), 1.7, mask=mask, softcap=5.0)


def test_a_head_with_alpha_1_is_softmax():
    q, k, v = problem(BIG, torch.float64)
    got, found = ss.attention(q, k, v, alpha=torch.tensor([1.0, 1.5, 1.0, 2.0]), causal=True, return_partition=True)
    want, p = ss.attention(q, k, v, causal=True, return_partition=True)
    for head in (0, 2):
        close(got[:, head], want[:, head], 1e-14, "output")
        for name in ("entropy", "collision", "peak", "jacobian_trace"):
            close(getattr(found, name)[:, head], getattr(p, name)[:, head], 1e-13, name)
        assert (found.tau[:, head] == -1.0).all()
        assert (found.size[:, head] == p.count[:, head]).all()
    alone = ss.attention(q, k, v, alpha=2.0, causal=True)
    assert torch.equal(got[:, 3], alone[:, 3])


def test_arrays_and_tensors_agree_to_the_bit():
    q, k, v = problem(BIG, torch.float32)
    alpha = torch.tensor([1.0, 1.5, 2.5, 1.2])
    got = ss.attention(*(x.numpy() for x in (q, k, v)), alpha=alpha.numpy(), causal=True)
    np.testing.assert_array_equal(got, ss.attention(q, k, v, alpha=alpha, causal=True).numpy())


def structured(n, m, share):
    """Keys of which only some tiles of 32 can have weight."""
    q, k, v = problem((1, 1, n, m, 16, 16), torch.float64, batch=())
    live = torch.rand(m // 32, generator=torch.Generator().manual_seed(5)) < share
    live[0] = True
    q[..., 0], k[..., 0] = 8.0, torch.where(live.repeat_interleave(32), 4.0, -4.0)
    return q, k, v


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_tiles_without_weight_are_skipped_and_nothing_is_lost(share, alpha):
    q, k, v = structured(50, 1024, share)
    check(q, k, v, alpha)
    check(q.float(), k.float(), v.float(), alpha)


def test_dense_and_scattered_weights():
    """Few weights are multiplied key by key, many in tiles: both occur in one call."""
    q, k, v = problem((2, 2, 30, 640, 16, 40), torch.float64, batch=())
    q[0] *= 0.01  # nearly uniform: every key has weight
    q[1] *= 6.0
    size = ss.attention_partition(q, k, alpha=1.5).size
    assert (size[0] == 640).all()
    assert (size[1] < 40).all()
    check(q, k, v, 1.5)


def test_nan_stays_where_it_is():
    q, k, v = problem((2, 2, 40, 300, 16, 8), torch.float32)
    options = {"alpha": 1.5, "causal": True, "query_start": 200}
    clean = ss.attention(q, k, v, **options)
    broken = q.clone()
    broken[0, 1, 2, 5] = math.nan
    got, found = ss.attention(broken, k, v, return_partition=True, **options)
    where = torch.zeros(got.shape[:-1], dtype=torch.bool)
    where[0, 1, 2] = True
    assert got[where].isnan().all()
    assert torch.equal(got[~where], clean[~where])
    assert torch.equal(found.entropy.isnan(), where)
    assert (found.size[where] == 0).all()
    for array in (0, 1):  # a key, then a value: only rows that see it change, whatever its weight
        changed = [k.clone(), v.clone()]
        changed[array][0, 0, 202, 3] = math.nan if array == 0 else math.inf
        got = ss.attention(q, *changed, **options)
        seen = torch.zeros(got.shape, dtype=torch.bool)
        seen[0, 0, 2:, slice(None) if array == 0 else 3] = True
        assert got[seen].isnan().all()
        assert torch.equal(got[~seen], clean[~seen])


def test_infinite_logits():
    q, k, v = problem((1, 1, 7, 20, 4, 4), torch.float32, batch=())
    k[0, 3, :], q[0] = math.inf, q[0].abs()
    output, found = ss.attention(q, k, v, alpha=1.5, return_partition=True)
    assert output.isnan().all()
    assert found.entropy.isnan().all()
    k[0, 3, :] = -math.inf
    others = [torch.cat([x[:, :3], x[:, 4:]], dim=1) for x in (k, v)]
    close(ss.attention(q, k, v, alpha=1.5), ss.attention(q, *others, alpha=1.5), 1e-6, "without the hidden key")


@pytest.mark.parametrize("alpha", [1.0001, 1.3, 1.5, 2.0, 4.0])
def test_rows_that_see_nothing(alpha):
    q, k, v = problem((2, 1, 9, 70, 8, 8), torch.float32)
    mask = torch.ones(9, 70, dtype=torch.bool)
    mask[4] = False
    output, found = ss.attention(q, k, v, alpha=alpha, mask=mask, return_partition=True)
    assert (output[..., 4, :] == 0.0).all()
    assert (found.size[..., 4] == 0).all()
    for name in ("tau", "entropy", "collision", "peak", "jacobian_trace"):
        assert getattr(found, name)[..., 4].isnan().all()
        assert not getattr(found, name)[..., :4].isnan().any()


def test_the_same_bits_whatever_the_number_of_threads():
    q, k, v = problem((2, 1, 300, 900, 16, 16), torch.float32, batch=())
    alpha = torch.tensor([1.3, 1.5])
    before, results = ss.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            ss.set_num_threads(threads)
            results.append(ss.attention(q, k, v, alpha=alpha, causal=True, query_start=600, return_partition=True))
    finally:
        ss.set_num_threads(before)
    for output, found in results[1:]:
        assert torch.equal(output, results[0][0])
        assert torch.equal(found.entropy, results[0][1].entropy)


def test_models_views_are_taken_as_they_are():
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in problem((4, 4, 70, 70, 16, 16), torch.float32))
    got = ss.attention(q, k, v, alpha=1.5, causal=True)
    assert torch.equal(got, ss.attention(q.contiguous(), k.contiguous(), v.contiguous(), alpha=1.5, causal=True))


def test_what_would_crash_is_refused():
    q = np.zeros((1, 2, 3, 4), np.float32)
    options = _engine.AttentionOptions(
        scale=np.ones(2), positions=np.arange(3), left=9, right=9, mask=None, brain_mask=False, softcap=0.0, sink=None
    )
    right = {
        "q": q, "k": q, "v": q, "alpha": np.full(2, 1.5), "out": np.empty_like(q), "numbers": np.empty((1, 2, 3, 10)),
        "options": options, "brain": False, "statistics": True, "threads": 1,
    }  # fmt: skip
    _engine.sparse_attention(**right)
    back = {name: right[name] for name in ("q", "k", "v", "alpha", "numbers", "options", "brain", "threads")} | {
        "grad": q, "dq": q.copy(), "dk": q.copy(), "dv": q.copy(), "dscale": np.empty((1, 2, 3)), "dalpha": None,
    }  # fmt: skip
    _engine.sparse_attention_backward(**back)
    for name, wrong in [
        ("alpha", np.ones(3)), ("numbers", np.empty((1, 2, 3, 8))), ("out", right["out"][:, :1]), ("v", q[:, :, :2]),
        ("k", q[:, :1, :, :3]),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            _engine.sparse_attention(**(right | {name: wrong}))
    for name, wrong in [
        ("alpha", np.ones(3)), ("numbers", np.empty((1, 2, 3, 8))), ("grad", q[..., :3]), ("dq", q[:, :1]),
        ("dk", q[:, :, :2]), ("dscale", np.empty((1, 2, 2))), ("dalpha", np.empty((1, 2, 2))),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            _engine.sparse_attention_backward(**(back | {name: wrong}))
