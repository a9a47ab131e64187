"""The dozen sums of a row of attention that the doctor reads, against the same in long double."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softscope import _engine

TYPES = {np.dtype(np.float32): 2, np.dtype(np.float64): 3}
NAMES = (
    "top", "aligned", "z", "product", "squares", "below", "squared_below", "mean", "demand", "lowest", "expected",
    "supply",
)  # fmt: skip
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 511, 1023, 1024, 1025, 1031, 2500]


def engine(x: Any, grad: Any, lengths: Any, threads: int = 1) -> tuple[dict[str, Any], Any]:
    """What the engine finds, and the weights that it leaves."""
    x = x.copy()
    groups, rows, keys = x.shape
    counts = (x > -np.inf).sum(axis=-1).astype(x.dtype)
    out = np.full((len(NAMES), groups, rows), 7.0, x.dtype)
    address = 0 if grad is None else grad.ctypes.data
    _engine.read_rows(
        x.ctypes.data, address, lengths.ctypes.data, counts.ctypes.data, out.ctypes.data,
        groups, rows, keys, lengths.shape[-1], TYPES[x.dtype], threads,
    )  # fmt: skip
    return dict(zip(NAMES, out, strict=True)), x


def definition(x: Any, grad: Any, lengths: Any) -> tuple[dict[str, Any], Any]:
    seen = x > -np.inf
    n = seen.sum(axis=-1)
    wide, lengths = x.astype(np.longdouble), lengths[:, None, : x.shape[-1]].astype(np.longdouble)
    top = wide.max(axis=-1)
    d = np.where(seen, wide - top[..., None], 0.0)
    e = np.where(seen, np.exp(d), 0.0)
    p = e / e.sum(axis=-1)[..., None]
    found = {
        "top": top, "aligned": np.where(seen, np.abs(wide) * lengths, 0.0).sum(axis=-1), "z": e.sum(axis=-1),
        "product": (e * d).sum(axis=-1), "squares": (e * e).sum(axis=-1), "below": d.sum(axis=-1),
        "squared_below": (d * d).sum(axis=-1),
    }  # fmt: skip
    if grad is None:
        return found, p
    g = np.where(seen, grad, 0.0).astype(np.longdouble)
    mean = g.sum(axis=-1) / n
    c = np.where(seen, g - mean[..., None], 0.0)
    # Counted from the largest weight: next to one-hot even long double would lose what is left.
    at_top = np.take_along_axis(c, x.argmax(axis=-1)[..., None], axis=-1)
    away = (p * (c - at_top)).sum(axis=-1)
    expected = at_top[..., 0] + away
    jacobian = p * ((c - at_top) - away[..., None])
    found |= {
        "mean": mean, "demand": np.sqrt((c * c).sum(axis=-1)), "lowest": c.min(axis=-1), "expected": expected,
        "supply": np.sqrt((jacobian * jacobian).sum(axis=-1)),
    }  # fmt: skip
    return found, p


def rows(keys: int, dtype: Any, spread: float = 3.0, hidden: float = 0.3) -> tuple[Any, Any, Any]:
    """Logits of 3 groups of 5 rows with some hidden, a gradient, and more lengths than keys."""
    rng = np.random.default_rng(keys)
    x = (spread * rng.normal(size=(3, 5, keys))).astype(dtype)
    gone = rng.random(x.shape) < hidden
    gone[..., rng.integers(keys)] = False
    x[gone] = -np.inf
    grad = rng.normal(size=x.shape).astype(dtype)
    grad[gone & (rng.random(x.shape) < 0.5)] = np.nan  # what is hidden may be anything
    return x, grad, rng.uniform(0.5, 2.0, size=(3, keys + 3)).astype(dtype)


def close(got: dict[str, Any], wanted: dict[str, Any], dtype: Any, factor: float = 64.0) -> None:
    for name, value in wanted.items():
        # Sums of numbers of both signs are as exact as their terms are large.
        size = np.abs(value) + (1.0 if name in ("mean", "expected", "lowest", "demand") else 0.0)
        assert (np.abs(got[name] - value) <= factor * np.finfo(dtype).eps * size).all(), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keys", SIZES)
def test_sums_and_weights(keys: int, dtype: Any) -> None:
    x, grad, lengths = rows(keys, dtype)
    got, weights = engine(x, grad, lengths)
    wanted, p = definition(x, grad, lengths)
    close(got, wanted, dtype)
    assert np.abs(weights - p).max() <= 8 * np.finfo(dtype).eps
    assert (weights[x == -np.inf] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_gradient(dtype: Any) -> None:
    x, _, lengths = rows(100, dtype)
    got, weights = engine(x, None, lengths)
    wanted, p = definition(x, None, lengths)
    close(got, wanted, dtype)
    assert np.abs(weights - p).max() <= 8 * np.finfo(dtype).eps
    assert (got["supply"] == 0).all()


@pytest.mark.parametrize("spread", [30.0, 300.0])
def test_next_to_one_hot_the_supply_keeps_its_digits(spread: float) -> None:
    """What reaches q and k is tiny there, and it is what the doctor judges by."""
    x, grad, lengths = rows(300, np.float64, spread)
    grad = grad + 1e3
    got, _ = engine(x, grad, lengths)
    wanted, _ = definition(x, grad, lengths)
    assert (wanted["supply"] < 1e-3).any()
    assert got["supply"] == pytest.approx(wanted["supply"].astype(float), rel=1e-8, abs=1e-290)


def test_any_number_of_threads_finds_the_same() -> None:
    x, grad, lengths = rows(2500, np.float32)
    x, grad = np.repeat(x, 20, axis=1), np.repeat(grad, 20, axis=1)
    (one, p), (two, q) = engine(x, grad, lengths, 1), engine(x, grad, lengths, 3)
    assert all(np.array_equal(one[name], two[name]) for name in NAMES)
    assert np.array_equal(p, q)


def test_rows_that_see_nothing_and_rows_with_nan() -> None:
    x, grad, lengths = rows(40, np.float32)
    x[0, 0] = -np.inf
    x[1, 1, 3] = np.nan
    x[2, 2, 5] = np.inf
    got, weights = engine(x, grad, lengths)
    assert got["top"][0, 0] == -np.inf
    assert got["z"][0, 0] == 0
    assert (weights[0, 0] == 0).all()
    assert np.isnan(got["top"][1, 1])
    assert np.isnan(got["z"][1, 1])
    assert got["top"][2, 2] == np.inf
    assert np.isnan(got["z"][2, 2])
    kept = np.ones((3, 5), bool)
    kept[[0, 1, 2], [0, 1, 2]] = False
    wanted, _ = definition(x[kept][:, None], grad[kept][:, None], np.repeat(lengths, [4, 4, 4], axis=0))
    close({name: value[kept][:, None] for name, value in got.items()}, wanted, np.float32)


def test_nothing_at_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="no rows at this address"):
        _engine.read_rows(0, 0, 8, 8, 8, 1, 1, 1, 1, 2, 1)
    with pytest.raises(ValueError, match="another type"):
        _engine.read_rows(8, 0, 8, 8, 8, 1, 1, 1, 1, 0, 1)
