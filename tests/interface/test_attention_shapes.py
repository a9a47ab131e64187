"""attention: chosen rows, one head, batches, memory, half precision; and additive attention."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import softscope as ss
from interface.calls import READINGS, SUPPORT
from interface.heads import GRAD, OPTIONS, SHOWN, K, M, N, Q, V, dense, made
from interface.kinds import BFLOAT16, cast, dtype_of, numpy, same, tensor

each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]


@each_room
@pytest.mark.parametrize("case", OPTIONS)
def test_chosen_rows_are_the_whole_then_chosen(case: str, make: Make) -> None:
    options, given = made(OPTIONS[case], make), [make(a) for a in (Q, K, V, GRAD)]
    whole, gradients = ss.attention_partition(*given[:2], **options), ss.gradient_readings(*given, **options)
    for rows in ([0, 2], [2], [-1, 0, 0], []):
        index = make(np.array(rows, dtype=np.int64))
        part = ss.attention_partition(*given[:2], **options, rows=index)
        for name in READINGS:
            same(getattr(part, name), numpy(getattr(whole, name))[..., rows])
        for got, wanted in zip(ss.gradient_readings(*given, **options, rows=index), gradients, strict=True):
            same(got, numpy(wanted)[..., rows])


@each_room
def test_chosen_rows_of_sparse_attention(make: Make) -> None:
    whole, part = (ss.attention_partition(make(Q), make(K), alpha=1.5, causal=True, rows=r) for r in (None, [2, 1]))
    for name in SUPPORT:
        same(getattr(part, name), numpy(getattr(whole, name))[..., [2, 1]])


@each_room
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
def test_one_head_without_its_axis(alpha: float, make: Make) -> None:
    q, k, v, g = (make(a[0, 0]) for a in (Q, K, V, GRAD))
    output, p = ss.attention(q, k, v, alpha=alpha, causal=True, mask=make(SHOWN[0, 0]), return_partition=True)
    many = [make(a[0, :1]) for a in (Q, K, V)]
    wanted, ps = ss.attention(*many, alpha=alpha, causal=True, mask=make(SHOWN[0, :1]), return_partition=True)
    same(output, wanted[0])
    same(p.entropy, ps.entropy[0])
    assert tuple(p.peak.shape) == (N,)
    readings = ss.gradient_readings(q, k, v, g, alpha=alpha)
    assert all(tuple(r.shape) == (N,) for r in readings)


@each_room
def test_batches_broadcast(make: Make) -> None:
    full = ss.attention(make(Q), make(np.stack([K[0]] * 2)), make(np.stack([V[0]] * 2)))
    same(ss.attention(make(Q), make(K[:1]), make(V[:1])), full)
    same(ss.attention(make(Q), make(K[0]), make(V[0])), full)
    one, p = ss.attention(make(Q[0]), make(K), make(V), return_partition=True)
    same(one[1], ss.attention(make(Q[0]), make(K[1]), make(V[1])))
    assert tuple(p.lse.shape) == (2, 4, N)
    only_v = ss.attention(make(Q[0]), make(K[0]), make(V))
    same(only_v[1], ss.attention(make(Q[0]), make(K[0]), make(V[1])))
    readings = ss.gradient_readings(make(Q[0]), make(K), make(V), make(GRAD))
    same(readings.supply[1], ss.gradient_readings(*(make(a) for a in (Q[0], K[1], V[1], GRAD[1]))).supply)
    five = ss.attention(*(make(a[None]) for a in (Q, K, V)))
    same(five[0], ss.attention(make(Q), make(K), make(V)))


@each_room
def test_heads_that_lie_behind_the_tokens_in_memory(make: Make) -> None:
    views = [make(np.ascontiguousarray(np.swapaxes(a, 1, 2))).swapaxes(1, 2) for a in (Q, K, V)]
    same(ss.attention(*views, causal=True), ss.attention(make(Q), make(K), make(V), causal=True))


@each_room
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32(dtype: str, make: Make) -> None:
    q, k, v = (cast(a, dtype) for a in (Q, K, V))
    got = ss.attention(make(q), make(k), make(v), causal=True)
    assert dtype_of(got) == dtype
    wanted = dense(*(a.astype(np.float64) for a in (q, k, v)), causal=True)["output"]
    same(got, wanted, rtol=2.0**-7 if q.dtype == BFLOAT16 else 2.0**-10, atol=1e-6)
    loud = make(cast(np.full((1, 2, 64), 300.0), dtype))  # q·k is 5.8 million: too large for float16
    output, p = ss.attention(loud, loud, loud, scale=1.0, return_partition=True)
    same(output, np.full((1, 2, 64), 300.0))
    same(p.max_logit, np.full((1, 2), 64 * 300.0**2), rtol=1e-6)
    same(p.entropy, np.full((1, 2), np.log(2.0)), rtol=1e-6)


def additive_loop(q: np.ndarray, k: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, v_a: np.ndarray) -> np.ndarray:
    logits = np.zeros((len(q), len(k)))
    for i, j in np.ndindex(logits.shape):
        logits[i, j] = v_a @ np.tanh(q[i] @ w_q + k[j] @ w_k)
    return logits


@each_room
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_additive_attention_is_its_loop(alpha: float, causal: bool, make: Make) -> None:
    random = np.random.default_rng(3)
    w_q, w_k, v_a = random.normal(size=(5, 7)), random.normal(size=(3, 7)), random.normal(size=7)
    k, shown = K[..., :3], SHOWN[0, 0] & (np.tri(N, M, dtype=bool) | (not causal))
    got, p = ss.additive_attention(
        *(make(a) for a in (Q, k, V, w_q, w_k, v_a)),
        causal=causal, mask=make(SHOWN[0, 0]), alpha=alpha, return_partition=True,
    )  # fmt: skip
    for b, h in np.ndindex(2, 4):
        logits = additive_loop(Q[b, h], k[b, h // 2], w_q, w_k, v_a)
        weights = ss.entmax(logits, alpha, where=shown)
        same(got[b, h], weights @ V[b, h // 2], rtol=1e-10)
        if alpha == 1.0:
            same(p.lse[b, h], ss.logsumexp(logits, where=shown))
            same(p.max_logit[b, h], np.where(shown, logits, -np.inf).max(axis=-1))
    flat = ss.additive_attention(*(make(a) for a in (Q[0, 0], k[0, 0], V[0, 0], w_q, w_k, v_a)))
    same(flat, ss.softmax(additive_loop(Q[0, 0], k[0, 0], w_q, w_k, v_a)) @ V[0, 0])
