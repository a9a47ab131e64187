"""The backward pass of the attention kernels, larger than one block in every direction, against float64 autograd."""

import math

import pytest
import torch

import softscope as ss

# heads, kv_heads, n, m, d, dv: more than 48 rows (a group), more than 128 keys (a block), odd widths, one shared head.
SIZES = [
    (4, 2, 130, 300, 20, 12),
    (1, 1, 400, 400, 64, 64),
    (2, 1, 3, 150, 33, 7),
    (2, 2, 60, 40, 1, 1),
    (8, 8, 9, 17, 8, 8),
]


def dense(q, k, v, *, scale=None, causal=False, query_start=0, window=None, mask=None, softcap=None, sink=None):
    """Attention in plain operations; boolean or additive masks."""
    heads, n, m = q.shape[-3], q.shape[-2], k.shape[-2]
    k, v = (x.repeat_interleave(heads // x.shape[-3], dim=-3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scale = scale[:, None, None] if isinstance(scale, torch.Tensor) else scale
    x = scale * (q @ k.mT)
    x = x if softcap is None else softcap * torch.tanh(x / softcap)
    offset = torch.arange(m) - (query_start + torch.arange(n))[:, None]
    left, right = window or (None, None)
    hidden = torch.zeros(n, m, dtype=torch.bool)
    hidden = hidden | (offset > 0) if causal else hidden
    hidden = hidden if left is None else hidden | (offset < -left)
    hidden = hidden if right is None else hidden | (offset > right)
    if mask is not None:
        hidden = hidden | (~mask if mask.dtype == torch.bool else mask == -math.inf)
        x = x if mask.dtype == torch.bool else x + mask.masked_fill(mask == -math.inf, 0.0)
    x = x.masked_fill(hidden, -math.inf)
    if sink is not None:
        x = torch.cat([x, sink[:, None, None].expand(*x.shape[:-1], 1)], dim=-1)
    p = torch.softmax(x, dim=-1).nan_to_num(0.0)
    return p[..., :m] @ v


def problem(size, dtype, seed=0, batch=(2,)):
    heads, kv_heads, n, m, d, dv = size
    generator = torch.Generator().manual_seed(seed)
    shapes = ((heads, n, d), (kv_heads, m, d), (kv_heads, m, dv), (heads, n, dv))
    return [torch.randn(*batch, *s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes]


def gradients(function, arrays, wanted, **options):
    """Gradients of q, k, v and the named options, for a given gradient of the output."""
    *inputs, gradient = arrays
    inputs = [x.detach().requires_grad_() for x in inputs]
    options = {
        name: x.detach().requires_grad_(name in wanted) if isinstance(x, torch.Tensor) else x
        for name, x in options.items()
    }
    output = function(*inputs, **options)
    return output, torch.autograd.grad(output, [*inputs, *(options[name] for name in wanted)], gradient)


def check(arrays, tolerance, wanted=(), **options):
    exact = [x.double() for x in arrays]
    wide = {n: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for n, x in options.items()}
    _, want = gradients(dense, exact, wanted, **wide)
    _, got = gradients(ss.attention, arrays, wanted, **options)
    for name, g, w in zip(("q", "k", "v", *wanted), got, want, strict=True):
        scale = max(1.0, float(w.abs().max()))
        assert g.shape == w.shape
        assert float((g.double() - w).abs().max()) <= tolerance * scale, name


TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-5, torch.bfloat16: 4e-2, torch.float16: 5e-3}
OPTIONS = {
    "plain": {},
    "causal": {"causal": True, "query_start": 20},
    "window": {"window": (70, 3), "query_start": 30},
    "soft cap": {"softcap": 1.5},
    "a row that sees nothing": {"causal": True, "query_start": -2},
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_q_k_and_v(size, option, dtype):
    check(problem(size, dtype), TOLERANCE[dtype], **OPTIONS[option])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["boolean", "additive"])
@pytest.mark.parametrize("shape", [(2, 4, 130, 300), (130, 300), (2, 1, 1, 300)])
def test_masks(dtype, kind, shape):
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(shape, generator=generator) < 0.7
    if kind == "additive":
        mask = torch.randn(shape, generator=generator).to(dtype).masked_fill(~mask, -math.inf)
    check(problem(SIZES[0], dtype), TOLERANCE[dtype], mask=mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("softcap", [None, 2.0])
def test_scale_and_sink_of_each_head(dtype, softcap):
    scale = torch.tensor([0.3, -1.0, 0.0, 0.1], dtype=torch.float64)
    sink = torch.tensor([-1.0, 0.0, 2.0, 40.0], dtype=torch.float64)
    check(
        problem(SIZES[0], dtype), TOLERANCE[dtype] * 10, ("scale", "sink"), scale=scale, sink=sink, softcap=softcap,
        causal=True, query_start=-1,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(130, 300), (2, 4, 130, 300), (2, 1, 1, 300)])
def test_an_additive_mask_has_a_gradient(shape):
    mask = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    check(problem(SIZES[0], torch.float64), 1e-12, ("mask",), mask=mask, causal=True, query_start=20)


def test_keys_shared_by_the_batch_get_the_sum():
    q, k, v, gradient = problem((2, 1, 7, 40, 8, 8), torch.float64)
    check([q, k[0], v[:1], gradient], 1e-13)


def test_views_of_models_and_expanded_gradients():
    arrays = [x.transpose(-2, -3).contiguous().transpose(-2, -3) for x in problem(SIZES[0], torch.float32)]
    check(arrays, TOLERANCE[torch.float32], causal=True)
    q, k, v, _ = arrays
    q.requires_grad_()
    ss.attention(q, k, v).sum().backward()
    assert torch.isfinite(q.grad).all()


def test_the_same_bits_whatever_the_number_of_threads():
    arrays = problem((1, 1, 400, 300, 16, 16), torch.float32, batch=())
    before = ss.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            ss.set_num_threads(threads)
            found.append(gradients(ss.attention, arrays, ()))
    finally:
        ss.set_num_threads(before)
    for output, slopes in found[1:]:
        assert torch.equal(output, found[0][0])
        assert all(torch.equal(a, b) for a, b in zip(slopes, found[0][1], strict=True))


def test_hidden_nan_does_not_reach_gradients():
    q, k, v, gradient = problem((1, 1, 150, 200, 8, 8), torch.float32, batch=())
    _, clean = gradients(ss.attention, [q, k, v, gradient], (), causal=True)
    for x in (k, v):
        x[0, 170:] = math.nan  # no query sees these
    _, (dq, dk, dv) = gradients(ss.attention, [q, k, v, gradient], (), causal=True)
    assert torch.equal(dq, clean[0])
    assert torch.equal(dk[0, :150], clean[1][0, :150])
    assert torch.equal(dv[0, :150], clean[2][0, :150])
    q[0, 100] = math.nan
    _, (dq, dk, dv) = gradients(ss.attention, [q, k, v, gradient], (), causal=True)
    assert torch.isnan(dq[0, 100]).all()
    assert torch.isfinite(torch.cat([dq[0, :100], dq[0, 101:]])).all()
    assert torch.isnan(dk[0, :101]).all()
    assert torch.isfinite(dk[0, 101:150]).all()
