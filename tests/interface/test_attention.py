"""attention: its options against attention written out, against PyTorch, and against each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import softscope as ss
from interface.heads import BIAS, DV, GRAD, HEADS, KV_HEADS, OPTIONS, SHOWN, SINK, K, M, N, Q, V, dense, made
from interface.kinds import numpy, same, tensor

each_room = pytest.mark.parametrize("make", [np.array, tensor])
each_option = pytest.mark.parametrize("case", OPTIONS)
Make = Callable[[Any], Any]


@each_room
@each_option
def test_every_option_means_what_the_design_says(case: str, make: Make) -> None:
    options, wanted = OPTIONS[case], dense(Q, K, V, **OPTIONS[case])
    output, p = ss.attention(make(Q), make(K), make(V), **made(options, make), return_partition=True)
    same(output, wanted["output"])
    same(ss.attention(make(Q), make(K), make(V), **made(options, make)), output, rtol=0.0, atol=0.0)
    visible = wanted["visible"]
    same(p.count, visible.sum(axis=-1))
    with np.errstate(divide="ignore"):
        same(p.lse, np.log(np.exp(wanted["logits"]).sum(axis=-1)))
    same(p.max_logit, np.where(visible, wanted["scores"], -np.inf).max(axis=-1))


@each_option
def test_every_option_has_its_gradient(case: str) -> None:
    slopes = []
    for function in (ss.attention, naive):
        leaves = [tensor(a).requires_grad_(True) for a in (Q, K, V)]
        output = function(*leaves, **made(OPTIONS[case], tensor))
        slopes.append(torch.autograd.grad(output, leaves, tensor(GRAD)))
    for got, wanted in zip(*slopes, strict=True):
        same(got, wanted, rtol=1e-9, atol=1e-12)


def naive(q: Any, k: Any, v: Any, **options: Any) -> torch.Tensor:
    """Attention from the formula of the weights, with visibility taken from `dense`."""
    arrays = {name: numpy(o) if isinstance(o, torch.Tensor) else o for name, o in options.items()}
    visible = tensor(dense(*(numpy(a) for a in (q, k, v)), **arrays)["visible"])
    k, v = (a.repeat_interleave(HEADS // KV_HEADS, dim=1) for a in (k, v))
    scale = options.get("scale", 1 / np.sqrt(q.shape[-1]))
    s = q @ k.transpose(-1, -2) * (scale.view(-1, 1, 1) if isinstance(scale, torch.Tensor) else scale)
    cap, bias, sink = options.get("softcap"), options.get("mask"), options.get("sink")
    s = s if cap is None else cap * torch.tanh(s / cap)
    s = s + bias.masked_fill(~visible, 0.0) if bias is not None and bias.is_floating_point() else s
    e = torch.exp(s) * visible
    extra = 0.0 if sink is None else torch.exp(torch.as_tensor(sink, dtype=s.dtype)).view(-1, 1, 1)
    return e / (e.sum(dim=-1, keepdim=True) + extra).clamp(min=1e-300) @ v


TORCH = {
    "plain": {},
    "causal": {"is_causal": True},
    "boolean mask": {"attn_mask": SHOWN},
    "additive mask": {"attn_mask": BIAS},
    "scale": {"scale": 1.0},
}


@each_room
@pytest.mark.parametrize("case", TORCH)
def test_it_agrees_with_pytorch(case: str, make: Make) -> None:
    wanted = functional.scaled_dot_product_attention(
        tensor(Q), tensor(K), tensor(V), enable_gqa=True, **made(TORCH[case], tensor)
    )
    same(ss.attention(make(Q), make(K), make(V), **made(OPTIONS[case], make)), wanted, rtol=1e-9)


@each_room
@each_option
def test_grouped_queries_are_repeated_keys(case: str, make: Make) -> None:
    k, v = (np.repeat(a, HEADS // KV_HEADS, axis=1) for a in (K, V))
    options = made(OPTIONS[case], make)
    same(ss.attention(make(Q), make(K), make(V), **options), ss.attention(make(Q), make(k), make(v), **options))


@each_room
@pytest.mark.parametrize(
    ("start", "window"), [(0, None), (2, None), (-2, None), (0, (1, 0)), (3, (2, 1)), (0, (None, 1))]
)
@pytest.mark.parametrize("causal", [False, True])
def test_causal_and_window_are_the_masks_that_say_the_same(start: int, window: Any, causal: bool, make: Make) -> None:
    offset = np.arange(M) - (np.arange(N)[:, None] + start)
    shown = np.ones((N, M), dtype=bool)
    if causal:
        shown &= offset <= 0
    left, right = window or (None, None)
    if left is not None:
        shown &= offset >= -left
    if right is not None:
        shown &= offset <= right
    q, k, v = make(Q), make(K), make(V)
    got = ss.attention(q, k, v, causal=causal, query_start=start, window=window)
    same(got, ss.attention(q, k, v, mask=make(shown)))
    same(got, ss.attention(q, k, v, mask=make(np.where(shown, 0.0, -np.inf))))


@each_room
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
def test_keys_in_another_order_are_the_same_keys(alpha: float, make: Make) -> None:
    order = np.random.default_rng(0).permutation(M)
    got = ss.attention(make(Q), make(K[:, :, order]), make(V[:, :, order]), mask=make(SHOWN[..., order]), alpha=alpha)
    same(got, ss.attention(make(Q), make(K), make(V), mask=make(SHOWN), alpha=alpha), rtol=1e-10)


@each_room
def test_parts_of_the_keys_merge_to_the_whole(make: Make) -> None:
    q, shown = make(Q), make(SHOWN)
    whole, p = ss.attention(q, make(K), make(V), mask=shown, return_partition=True)
    parts = [slice(0, 1), slice(1, 4), slice(4, M)]
    pairs = [
        ss.attention(q, make(K[:, :, s]), make(V[:, :, s]), mask=shown[..., s], return_partition=True) for s in parts
    ]
    merged = ss.Partition.empty()
    for _, part in pairs:
        merged = merged.merge(part)
    for name in ("lse", "entropy", "collision", "peak", "max_logit", "variance", "count", "jacobian_trace"):
        same(getattr(merged, name), getattr(p, name), rtol=1e-11)
    shares = [np.exp(numpy(part.lse) - numpy(merged.lse))[..., None] for _, part in pairs]
    joined = sum(share * numpy(output) for share, (output, _) in zip(shares, pairs, strict=True))
    same(joined, whole)


@each_room
def test_a_common_shift_changes_nothing(make: Make) -> None:
    shift = 1e6 * np.ones((*Q.shape[:-1], 1))
    q = np.concatenate([Q, shift], axis=-1)
    k = np.concatenate([K, np.ones((*K.shape[:-1], 1))], axis=-1)
    got, p = ss.attention(make(q), make(k), make(V), scale=0.4, return_partition=True)
    wanted, plain = ss.attention(make(Q), make(K), make(V), scale=0.4, return_partition=True)
    same(got, wanted, rtol=1e-8, atol=1e-9)
    same(numpy(p.lse) - 0.4e6, plain.lse, rtol=1e-7, atol=1e-8)
    same(p.entropy, plain.entropy, rtol=1e-8)
    same(ss.attention(make(Q), make(K), make(V), mask=make(np.full((N, M), -1e6))), dense(Q, K, V)["output"], 1e-8)


@each_room
@pytest.mark.parametrize("options", [{}, {"softcap": 0.7}, {"mask": SHOWN}, {"causal": True, "query_start": -1}])
def test_softmax_off_by_one_is_a_key_of_zeros(options: dict[str, Any], make: Make) -> None:
    got = ss.attention(make(Q), make(K), make(V), sink=0.0, **made(options, make))
    shown = dense(Q, K, V, **options)["visible"]
    k, v = (np.concatenate([a, np.zeros_like(a[:, :, :1])], axis=2) for a in (K, V))
    mask = np.concatenate([shown, np.ones_like(shown[..., :1])], axis=-1)
    same(got, ss.attention(make(Q), make(k), make(v), mask=make(mask), softcap=options.get("softcap")))


@each_room
def test_the_sink_takes_weight_but_is_not_in_the_partition(make: Make) -> None:
    q, k, v = make(Q), make(K), make(V)
    plain, p = ss.attention(q, k, v, return_partition=True)
    output, with_sink = ss.attention(q, k, v, sink=make(SINK), return_partition=True)
    for name in ("lse", "entropy", "count", "max_logit"):
        same(getattr(with_sink, name), getattr(p, name))
        same(getattr(ss.attention_partition(q, k, sink=make(SINK)), name), getattr(p, name))
    share = 1.0 / (1.0 + np.exp(SINK[:, None] - numpy(p.lse)))
    same(output, share[..., None] * numpy(plain))
    same(ss.attention(q, k, v, sink=-np.inf), plain)
    same(ss.attention(q, k, v, sink=900.0), np.zeros_like(Q[..., :DV]))


@each_room
def test_the_soft_cap_binds_or_does_not(make: Make) -> None:
    q, k, v = make(100.0 * Q), make(K), make(V)
    same(ss.attention(q, k, v, softcap=1e9), ss.attention(q, k, v), rtol=1e-6, atol=1e-9)
    p = ss.attention_partition(q, k, softcap=2.0)
    assert (numpy(p.lse) <= 2.0 + np.log(M)).all()
    assert (numpy(p.max_logit) > 2.0).any()  # before capping
    same(p.max_logit, ss.attention_partition(q, k).max_logit)
    same(
        ss.attention(q, k, v, softcap=1e-9), np.repeat(V, 2, axis=1).mean(axis=2, keepdims=True) + 0 * Q[..., :DV], 1e-6
    )


@each_room
@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_sparse_attention_is_the_sparse_map_of_the_logits(alpha: float, make: Make) -> None:
    logits = dense(Q, K, V, mask=SHOWN)["logits"]
    p = ss.entmax(logits, alpha)
    output, support = ss.attention(make(Q), make(K), make(V), mask=make(SHOWN), alpha=alpha, return_partition=True)
    same(output, p @ np.repeat(V, 2, axis=1), rtol=1e-10)
    assert isinstance(support, ss.Support)
    same(support.size, (p > 0).sum(axis=-1))
    same(support.peak, p.max(axis=-1), rtol=1e-10)
    same(support.collision, (p**2).sum(axis=-1), rtol=1e-10)
    same(support.entropy, -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1), rtol=1e-9)
    back = np.maximum((alpha - 1) * logits - numpy(support.tau)[..., None], 0.0) ** (1 / (alpha - 1))
    same(back, p, rtol=1e-9, atol=1e-12)
    jacobian = ss.jacobian(p, alpha=alpha)
    same(support.jacobian_trace, np.trace(jacobian, axis1=-2, axis2=-1), rtol=1e-10)
