"""gradient_readings against autograd: the gradients that actually reach the weights and the logits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.heads import GRAD, HEADS, KV_HEADS, OPTIONS, K, M, N, Q, V, dense, made
from interface.kinds import numpy, same, tensor

each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]


def retained(options: dict[str, Any], alpha: float) -> tuple[np.ndarray, ...]:
    """Weights, dP and dS from autograd on materialised scores, with a sink as one more key; and what is visible."""
    wanted = dense(Q, K, V, **options)
    visible, scores = tensor(wanted["visible"]), tensor(wanted["scores"]).requires_grad_(True)
    cap, bias, sink = options.get("softcap"), options.get("mask"), options.get("sink")
    x = scores if cap is None else cap * torch.tanh(scores / cap)
    if bias is not None and bias.dtype != bool:
        x = x + tensor(np.where(wanted["visible"], bias, 0.0))
    x = x.masked_fill(~visible, -torch.inf)
    v = tensor(np.repeat(V, HEADS // KV_HEADS, axis=1))
    if sink is not None:
        column = torch.as_tensor(sink, dtype=x.dtype).reshape(-1, 1, 1).expand(2, HEADS, N, 1).clone()
        x, v = torch.cat([x, column], dim=-1), torch.cat([v, torch.zeros_like(v[:, :, :1])], dim=2)
        visible = torch.cat([visible, torch.ones_like(visible[..., :1])], dim=-1)
    x.retain_grad()
    p = torch.softmax(x, dim=-1) if alpha == 1.0 else ss.entmax(x, alpha)
    p = p.masked_fill(~visible, 0.0)
    p.retain_grad()
    (p @ v).backward(tensor(GRAD))
    dS = scores.grad if sink is None else torch.cat([scores.grad, x.grad[..., -1:]], dim=-1)
    return tuple(numpy(a) for a in (p, p.grad, dS, visible))


def one_row(p: np.ndarray, dP: np.ndarray, dS: np.ndarray) -> list[float]:
    """The definitions for one row over its visible keys."""
    n, mean, std = len(p), dP.mean(), dP.std()
    demand, supply = np.linalg.norm(dP - mean), np.linalg.norm(dS)
    if n < 2 or demand < 1e-12:
        return [demand, supply, np.nan, np.nan, np.nan, False]
    transmission = n * supply / demand
    regret = (p @ dP - dP.min()) / (mean - dP.min())
    return [demand, supply, transmission, (mean - p @ dP) / std, regret, transmission < 0.0025 * np.sqrt(n)]


CASES = [(case, 1.0) for case in OPTIONS] + [("plain", 1.5), ("plain", 2.0), ("boolean mask", 2.0), ("soft cap", 1.5)]
CASES = [(case, alpha) for case, alpha in CASES if case != "causal, earlier"]  # its hidden row has its own test


@each_room
@pytest.mark.parametrize(("case", "alpha"), CASES)
def test_the_readings_are_those_of_autograds_gradients(case: str, alpha: float, make: Make) -> None:
    options = OPTIONS[case]
    p, dP, dS, visible = retained(options, alpha)
    got = ss.gradient_readings(*(make(a) for a in (Q, K, V, GRAD)), **made(options, make), alpha=alpha)
    for i in np.ndindex(2, HEADS, N):
        seen = visible[i]
        wanted = one_row(p[i][seen], dP[i][seen], dS[i][seen])
        for name, reading, value in zip(got._fields, got, wanted, strict=True):
            np.testing.assert_allclose(
                float(reading[i]), value, rtol=1e-8, atol=1e-11, equal_nan=True, err_msg=f"{name} of row {i}"
            )


@each_room
def test_a_uniform_row_transmits_all_and_a_saturated_one_is_blocked(make: Make) -> None:
    q, k = np.zeros((1, 1, 4)), np.random.default_rng(0).normal(size=(1, 8, 4))
    v, g = np.random.default_rng(1).normal(size=(1, 8, 3)), np.ones((1, 1, 3))
    uniform = ss.gradient_readings(*(make(a) for a in (q, k, v, g)))
    same(uniform.transmission, np.ones((1, 1)))
    same(uniform.regret_ratio, np.ones((1, 1)))
    same(uniform.advantage, np.zeros((1, 1)))
    assert not numpy(uniform.blocked).any()
    stuck = ss.gradient_readings(*(make(a) for a in (q + 300.0, k, v, g)))
    assert numpy(stuck.blocked).all()
    assert numpy(stuck.transmission) < 1e-6


@each_room
def test_the_border_of_blocked(make: Make) -> None:
    n = 16
    v = np.random.default_rng(2).normal(size=(1, n, 1))
    for peak, blocked in ((0.99, False), (0.9999, True)):
        bias = np.full((1, n), np.log((1 - peak) / (n - 1)))
        bias[0, 3] = np.log(peak)
        zeros = [make(np.zeros((1, m, 4))) for m in (1, n)]
        got = ss.gradient_readings(*zeros, make(v), make(np.ones((1, 1, 1))), mask=make(bias))
        assert bool(got.blocked[0, 0]) is blocked
        assert bool(float(got.transmission[0, 0]) < 0.0025 * np.sqrt(n)) is blocked


@each_room
def test_the_best_key_has_no_regret_and_the_worst_has_most(make: Make) -> None:
    q, k = np.full((1, 1, 1), 1.0), np.zeros((1, 4, 1))
    k[0, 2] = 800.0
    for sign, regret in ((-1.0, 0.0), (1.0, 2.0)):
        v = sign * np.array([[[-1.0], [0.0], [1.0], [-2.0]]])
        dP = v[0, :, 0]
        got = ss.gradient_readings(*(make(a) for a in (q, k, v, np.ones((1, 1, 1)))))
        same(got.advantage, np.full((1, 1), (dP.mean() - dP[2]) / dP.std()))
        same(got.regret_ratio, np.full((1, 1), regret))


@each_room
def test_rows_left_out(make: Make) -> None:
    mask = np.ones((N, M), dtype=bool)
    mask[0] = False  # sees nothing
    mask[1] = np.arange(M) == 2  # sees one key
    flat = V.copy()
    flat[1] = 1.0  # all keys are worth the same: no demand
    got = ss.gradient_readings(*(make(a) for a in (Q, K, flat, GRAD)), mask=make(mask))
    for name in ("transmission", "advantage", "regret_ratio"):
        reading = numpy(getattr(got, name))
        assert np.isnan(reading[:, :, :2]).all(), name
        assert np.isnan(reading[1]).all(), name
        assert np.isfinite(reading[0, :, 2]).all(), name
    assert np.isnan(numpy(got.demand)[:, :, 0]).all()
    assert np.isnan(numpy(got.supply)[:, :, 0]).all()
    assert not numpy(got.blocked)[:, :, :2].any()
    assert not numpy(got.blocked)[1].any()
    assert (numpy(got.demand)[1, :, 2] == 0.0).all()


def test_nothing_flows_through_the_readings() -> None:
    leaves = [tensor(a).requires_grad_(True) for a in (Q, K, V)]
    assert not any(reading.requires_grad for reading in ss.gradient_readings(*leaves, tensor(GRAD)))


@each_room
def test_nan_in_one_row_stays_there(make: Make) -> None:
    q, grad = Q.copy(), GRAD.copy()
    q[0, 0, 0, 0], grad[1, 1, 1, 0] = np.nan, np.nan
    got = ss.gradient_readings(make(q), make(K), make(V), make(grad))
    clean = ss.gradient_readings(make(Q), make(K), make(V), make(GRAD))
    others = np.ones((2, HEADS, N), dtype=bool)
    others[0, 0, 0] = others[1, 1, 1] = False
    for name, value, wanted in zip(got._fields, got, clean, strict=True):
        same(numpy(value)[others], numpy(wanted)[others])
        if name != "blocked":
            assert np.isnan(numpy(value)[1, 1, 1]), name
        if name not in {"blocked", "demand"}:  # demand does not depend on the query
            assert np.isnan(numpy(value)[0, 0, 0]), name


@each_room
@pytest.mark.parametrize("size", [1e-10, 1.0, 1e6])
def test_a_gradient_wider_than_q_keeps_its_range(size: float, make: Make) -> None:
    """In float16, 1e-10 would be 0 and 1e6 infinite."""
    q, k, v = (x.astype(np.float16) for x in (Q, K, V))
    grad = (GRAD * size).astype(np.float32)
    wanted = ss.gradient_readings(*(x.astype(np.float64) for x in (q, k, v, grad)))
    got = ss.gradient_readings(*(make(x) for x in (q, k, v, grad)))
    for name in ("demand", "supply", "transmission", "advantage"):
        exact = getattr(wanted, name)
        assert numpy(getattr(got, name)) == pytest.approx(exact, rel=1e-3, abs=1e-4 * np.abs(exact).max()), name


@each_room
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_nan_in_a_hidden_key_reaches_nothing_under_a_soft_cap(alpha: float, make: Make) -> None:
    mask = np.ones((N, M), bool)
    mask[:, 3] = False
    spoiled = K.copy()
    spoiled[..., 3, :] = np.nan
    options: dict[str, Any] = {"mask": make(mask), "softcap": 2.0, "alpha": alpha}
    wanted = ss.gradient_readings(make(Q), make(K), make(V), make(GRAD), **options)
    got = ss.gradient_readings(make(Q), make(spoiled), make(V), make(GRAD), **options)
    assert numpy(got.supply) == pytest.approx(numpy(wanted.supply), rel=1e-12)


@each_room
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_rows_of_any_integer_dtype(dtype: str, make: Make) -> None:
    """Positions are added to the indices, and 99 + 100 is negative in int8."""
    q, k = np.ones((1, 300, 4)), np.ones((1, 400, 4))
    rows = np.array([99, 7], dtype)
    given = torch.tensor(rows.astype(np.int64)).to(getattr(torch, dtype)) if make is tensor else rows
    got = ss.attention_partition(make(q), make(k), causal=True, query_start=100, rows=given)
    assert numpy(got.count).tolist() == [[200, 108]]
    with pytest.raises(ValueError, match=r"rows must lie in \[-5, 5\)"):
        ss.attention_partition(make(q[:, :5]), make(k), rows=given)


@each_room
@pytest.mark.parametrize("queries", [2, 5])
@pytest.mark.parametrize("keys", [7, 600, 3000])
def test_a_query_that_is_nan_still_sees_its_keys(keys: int, queries: int, make: Make) -> None:
    q, k = np.ones((1, queries, 4)), np.ones((1, keys, 4))
    q[0, 1] = np.nan
    for options, wanted in (({}, [keys] * queries), ({"mask": np.arange(keys) > 2}, [keys - 3] * queries)):
        given = {name: make(value) for name, value in options.items()}
        assert numpy(ss.attention_partition(make(q), make(k), **given).count).tolist() == [wanted]


@each_room
@pytest.mark.parametrize("options", [{}, {"alpha": 1.5}, {"softcap": 2.0, "causal": True}])
def test_values_with_more_batch_axes_than_queries_and_keys(options: dict[str, Any], make: Make) -> None:
    """`attention` broadcasts them, so its readings and statistics have a row for each of its outputs."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=shape) for shape in ((4, 3, 4), (2, 5, 4), (3, 2, 5, 4)))
    output, part = ss.attention(make(q), make(k), make(v), return_partition=True, **options)
    grad = rng.normal(size=tuple(output.shape))
    got = ss.gradient_readings(make(q), make(k), make(v), make(grad), **options)
    assert tuple(part.entropy.shape) == tuple(got.demand.shape) == tuple(output.shape[:-1]) == (3, 4, 3)
    for i in range(3):
        wanted = ss.gradient_readings(make(q), make(k), make(v[i]), make(grad[i]), **options)
        assert numpy(got.supply)[i] == pytest.approx(numpy(wanted.supply), rel=1e-12)
