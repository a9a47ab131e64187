"""attention where it is easy to get wrong: queries that see nothing, lowest numbers, NaN that must not leak."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import READINGS, SUPPORT
from interface.heads import BIAS, GRAD, SHOWN, K, M, N, Q, V
from interface.kinds import cast, numpy, same, tensor

each_room = pytest.mark.parametrize("make", [np.array, tensor])
each_alpha = pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
Make = Callable[[Any], Any]
HIDDEN = SHOWN.copy()
HIDDEN[:, :, 1] = False  # the second query of every head sees nothing
MASKS = {
    "boolean": HIDDEN,
    "-inf": np.where(HIDDEN, BIAS, -np.inf),
    "lowest": np.where(HIDDEN, BIAS, np.finfo(float).min),
}


@each_room
@each_alpha
@pytest.mark.parametrize("mask", MASKS)
def test_a_query_that_sees_nothing(mask: str, alpha: float, make: Make) -> None:
    given = make(MASKS[mask])
    output, p = ss.attention(make(Q), make(K), make(V), mask=given, alpha=alpha, return_partition=True)
    assert (numpy(output)[:, :, 1] == 0.0).all()
    assert np.isfinite(numpy(output)).all()
    if alpha == 1.0:
        names, zero, lowest = READINGS, "count", ("lse", "max_logit")
    else:
        names, zero, lowest = SUPPORT, "size", ()
    for name in names:
        row = numpy(getattr(p, name))[:, :, 1]
        good = (row == 0) if name == zero else (row == -np.inf) if name in lowest else np.isnan(row)
        assert good.all(), f"{name}: {row}"
        assert np.isfinite(numpy(getattr(p, name))[:, :, [0, 2]]).all(), name
    if alpha == 1.0:
        with_sink = ss.attention(make(Q), make(K), make(V), mask=given, sink=make(np.zeros(4)))
        assert (numpy(with_sink)[:, :, 1] == 0.0).all()
        nothing = ss.attention(make(Q), make(K), make(V), mask=given, sink=-np.inf)
        same(nothing, output)


@each_alpha
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sink", [None, 0.5])
def test_a_query_that_sees_nothing_passes_nothing_back(mask: str, alpha: float, sink: float | None) -> None:
    q = Q.copy()
    leaves = [tensor(a).requires_grad_(True) for a in (q, K, V)]
    options = {"mask": tensor(MASKS[mask]), "alpha": alpha} | ({"sink": sink} if alpha == 1.0 else {})
    slopes = torch.autograd.grad(ss.attention(*leaves, **options), leaves, tensor(GRAD))
    assert all(torch.isfinite(slope).all() for slope in slopes)
    assert (slopes[0][:, :, 1] == 0.0).all()
    assert (slopes[0][:, :, 0] != 0.0).any()
    others = [tensor(np.delete(a, 1, axis=2)).requires_grad_(True) for a in (Q,)] + [
        tensor(a).requires_grad_(True) for a in (K, V)
    ]
    options["mask"] = tensor(np.delete(MASKS[mask], 1, axis=2))
    wanted = torch.autograd.grad(ss.attention(*others, **options), others, tensor(np.delete(GRAD, 1, axis=2)))
    for got, expected in zip(slopes[1:], wanted[1:], strict=True):
        same(got, expected, rtol=1e-9)


@each_room
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_lowest_numbers_of_a_masks_own_dtype_hide(dtype: str, make: Make) -> None:
    lowest = float(torch.finfo(getattr(torch, dtype)).min)
    wanted = ss.attention(make(Q), make(K), make(V), mask=make(HIDDEN))
    for value in (lowest, lowest / 2):
        mask = make(cast(np.where(HIDDEN, 0.0, value), dtype))
        same(ss.attention(make(Q), make(K), make(V), mask=mask), wanted)
        same(ss.attention_partition(make(Q), make(K), mask=mask).count, HIDDEN.sum(axis=-1))
    mask = make(cast(np.full((N, M), lowest / 4), dtype))
    same(ss.attention_partition(make(Q), make(K), mask=mask).count, np.full((2, 4, N), M))


@each_room
@each_alpha
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_spoiled_query_stays_alone(bad: float, alpha: float, make: Make) -> None:
    q = Q.copy()
    q[0, 1, 2, 0] = bad
    output, p = ss.attention(make(q), make(K), make(V), alpha=alpha, return_partition=True)
    clean, wanted = ss.attention(make(Q), make(K), make(V), alpha=alpha, return_partition=True)
    assert np.isnan(numpy(output)[0, 1, 2]).all()
    others = np.ones((2, 4, N), dtype=bool)
    others[0, 1, 2] = False
    same(numpy(output)[others], numpy(clean)[others])
    for name in ("entropy", "peak"):
        same(numpy(getattr(p, name))[others], numpy(getattr(wanted, name))[others])
        assert np.isnan(numpy(getattr(p, name))[0, 1, 2])


@each_room
@pytest.mark.parametrize(("bad", "alpha"), [(np.nan, 1.0), (np.inf, 1.0), (-np.inf, 1.0), (np.nan, 1.5), (np.nan, 2.0)])
@pytest.mark.parametrize("spoiled", ["k", "v"])
def test_what_a_hidden_key_holds_does_not_leak(spoiled: str, bad: float, alpha: float, make: Make) -> None:
    k, v = K.copy(), V.copy()
    (k if spoiled == "k" else v)[:, :, 4] = bad
    shown = np.arange(M) != 4
    for options in ({"mask": make(shown)}, {"mask": make(np.where(shown, 0.0, -np.inf))}, {"causal": True}):
        options["alpha"] = alpha
        output, p = ss.attention(make(Q), make(k), make(v), **options, return_partition=True)
        clean, wanted = ss.attention(make(Q), make(K), make(V), **options, return_partition=True)
        same(output, clean)
        same(p.entropy, wanted.entropy)
    readings = ss.gradient_readings(make(Q), make(k), make(v), make(GRAD), mask=make(shown), alpha=alpha)
    clean = ss.gradient_readings(make(Q), make(K), make(V), make(GRAD), mask=make(shown), alpha=alpha)
    for got, wanted in zip(readings, clean, strict=True):
        same(got, wanted)


@each_alpha
@pytest.mark.parametrize("spoiled", ["k", "v"])
def test_what_a_hidden_key_holds_does_not_leak_into_gradients(spoiled: str, alpha: float) -> None:
    arrays = {"q": Q, "k": K.copy(), "v": V.copy()}
    arrays[spoiled][:, :, 4] = np.nan
    options = {"mask": tensor(np.arange(M) != 4), "alpha": alpha}
    slopes = []
    for given in (arrays, {"q": Q, "k": K, "v": V}):
        leaves = [tensor(a).requires_grad_(True) for a in given.values()]
        slopes.append(torch.autograd.grad(ss.attention(*leaves, **options), leaves, tensor(GRAD)))
    seen = np.arange(M) != 4
    same(slopes[0][0], slopes[1][0])
    same(slopes[0][1][:, :, seen], slopes[1][1][:, :, seen])
    same(slopes[0][2][:, :, seen], slopes[1][2][:, :, seen])


def test_a_spoiled_query_that_sees_nothing_does_not_leak_into_gradients() -> None:
    q = Q.copy()
    q[:, :, 1] = np.nan
    slopes = []
    for given in (q, Q):
        leaves = [tensor(a).requires_grad_(True) for a in (given, K, V)]
        output = ss.attention(*leaves, mask=tensor(HIDDEN))
        assert (output[:, :, 1] == 0.0).all()
        slopes.append(torch.autograd.grad(output, leaves, tensor(GRAD)))
    for got, wanted in zip(*slopes, strict=True):
        same(got, wanted)
