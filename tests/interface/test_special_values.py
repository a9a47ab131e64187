"""NaN, +inf and −inf: what they do to their own row, and that the other rows are unaffected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import FAMILY, LABELS, MAPS, OTHER, WEIGHTS, X, leaves
from interface.kinds import numpy, same, tensor

NUMBERS_OF_A_ROW = ("entropy", "collision", "peak", "variance", "jacobian_trace", "effective_support", "sharpness")
ROWS: dict[str, Callable[..., Any]] = {
    **FAMILY,
    "cross_entropy": lambda x, **o: ss.cross_entropy(x, _like(LABELS, x), reduction="none", **o),
}
BESIDE = np.ones((2, 3), dtype=bool)
BESIDE[0, 1] = False
TEMPERATURES = [1.0, 0.3, np.full((2, 3, 1), 0.3)]


def _like(a: np.ndarray, x: Any) -> Any:
    return tensor(a) if isinstance(x, torch.Tensor) else a


def spoiled(*values: float, a: np.ndarray = X) -> np.ndarray:
    """The array with these values at the start of row (0, 1)."""
    a = a.copy()
    a[0, 1, : len(values)] = values
    return a


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
@pytest.mark.parametrize("name", ROWS)
def test_other_rows_are_as_before(name: str, temperature: Any, dtype: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if np.ndim(temperature) else temperature
    clean = leaves(ROWS[name](make(X.astype(dtype)), temperature=t))
    for bad in ((np.nan,), (np.inf,), (np.nan, np.inf), (np.inf, np.inf), (-np.inf,) * 4):
        got = leaves(ROWS[name](make(spoiled(*bad).astype(dtype)), temperature=t))
        for reading, value in got.items():
            same(numpy(value)[BESIDE], numpy(clean[reading])[BESIDE], rtol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
def test_nan_weights_stay_in_their_row(alpha: float, make: Callable[[Any], Any]) -> None:
    p, v = make(spoiled(np.nan, a=WEIGHTS)), make(OTHER)
    for got, clean in (
        (ss.jacobian(p, alpha=alpha), ss.jacobian(make(WEIGHTS), alpha=alpha)),
        (ss.jacobian_product(p, v, alpha=alpha), ss.jacobian_product(make(WEIGHTS), v, alpha=alpha)),
        (ss.jacobian_product(make(WEIGHTS), make(spoiled(np.nan, a=OTHER)), alpha=alpha),
         ss.jacobian_product(make(WEIGHTS), v, alpha=alpha)),
    ):  # fmt: skip
        same(numpy(got)[BESIDE], numpy(clean)[BESIDE])
        assert np.isnan(numpy(got)[0, 1]).any()


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
@pytest.mark.parametrize("name", ROWS)
def test_nan_in_is_nan_out(name: str, temperature: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if np.ndim(temperature) else temperature
    for bad in ((np.nan,), (np.nan, np.inf), (np.nan, -np.inf)):
        for reading, value in leaves(ROWS[name](make(spoiled(*bad)), temperature=t)).items():
            if reading != "count":
                assert np.isnan(numpy(value)[0, 1]).all(), f"{bad}: {reading} is {value[0, 1]}"


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
@pytest.mark.parametrize("bad", [(np.inf,), (np.inf, np.inf), (np.inf, -np.inf)], ids=str)
def test_plus_infinity(bad: tuple[float, ...], temperature: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if np.ndim(temperature) else temperature
    x = make(spoiled(*bad))
    for name, function in MAPS.items():
        assert np.isnan(numpy(function(x, temperature=t))[0, 1]).all(), name
    same(ss.logsumexp(x, temperature=t)[0, 1], np.array(np.inf))
    p = ss.partition(x, temperature=t)
    same(p.lse[0, 1], np.array(np.inf))
    for name in NUMBERS_OF_A_ROW:
        assert np.isnan(numpy(getattr(p, name))[0, 1]), name
    assert np.isnan(numpy(ss.temperature_for(x, entropy=0.5))[0, 1, 0])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
def test_a_row_of_minus_infinity(temperature: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if np.ndim(temperature) else temperature
    x = make(spoiled(*[-np.inf] * 4))
    for name, function in MAPS.items():
        assert np.isnan(numpy(function(x, temperature=t))[0, 1]).all(), name
    same(ss.logsumexp(x, temperature=t)[0, 1], np.array(-np.inf))
    p = ss.partition(x, temperature=t)
    assert int(p.count[0, 1]) == 0
    for value in (p.lse, p.max_logit):
        same(value[0, 1], np.array(-np.inf))
    for name in NUMBERS_OF_A_ROW:
        assert np.isnan(numpy(getattr(p, name))[0, 1]), name
    assert np.isnan(numpy(ss.temperature_for(x, entropy=0.5))[0, 1, 0])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
@pytest.mark.parametrize("name", FAMILY)
def test_minus_infinity_is_as_if_cut_out(name: str, temperature: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if np.ndim(temperature) else temperature
    got = leaves(FAMILY[name](make(spoiled(-np.inf, -np.inf)), temperature=t))
    number = 1.0 if temperature is TEMPERATURES[0] else 0.3
    wanted = leaves(FAMILY[name](X[0, 1, 2:], temperature=number))
    for reading, value in got.items():
        row = numpy(value)[0, 1]
        if name in MAPS:
            assert (row[:2] == (-np.inf if name == "log_softmax" else 0.0)).all()
        same(row[2:] if name in MAPS else row, wanted[reading])


@pytest.mark.parametrize("make", [np.array, tensor])
def test_the_lowest_number_is_a_number_like_any_other(make: Callable[[Any], Any]) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        low = make(np.full(4, np.finfo(dtype).min, dtype=dtype))
        for name, function in MAPS.items():
            value = np.log(0.25) if name == "log_softmax" else 0.25
            same(function(low), np.full(4, value), rtol=1e-3)
        assert int(ss.partition(low).count) == 4


@pytest.mark.parametrize("make", [np.array, tensor])
def test_finite_numbers_never_overflow(make: Callable[[Any], Any]) -> None:
    big = np.finfo(np.float64).max
    for name, function in MAPS.items():
        got = np.exp(numpy(function(make([big, -big])))) if name == "log_softmax" else function(make([big, -big]))
        same(got, np.array([1.0, 0.0]))
    assert np.isfinite(numpy(ss.partition(make([big, -big])).entropy))
    same(ss.logsumexp(make([big, -big])), np.array(big))


@pytest.mark.parametrize("bad", [(np.nan,), (np.inf,), (-np.inf,) * 4, (-np.inf,)], ids=str)
@pytest.mark.parametrize("name", FAMILY)
def test_gradients_of_other_rows_are_as_before(name: str, bad: tuple[float, ...]) -> None:
    def slope(x: np.ndarray) -> np.ndarray:
        leaf = tensor(x).requires_grad_(True)
        result = leaves(FAMILY[name](leaf, temperature=0.7))
        terms = [
            (value * torch.linspace(1, 2, value.numel()).view(value.shape)).sum()
            for reading, value in result.items()
            if reading != "count"
        ]
        (grad,) = torch.autograd.grad(sum(terms), leaf)
        return grad.numpy()

    same(slope(spoiled(*bad))[BESIDE], slope(X)[BESIDE])


@pytest.mark.parametrize("name", FAMILY)
def test_an_entry_of_minus_infinity_takes_no_gradient_and_spoils_none(name: str) -> None:
    x = tensor(spoiled(-np.inf, -np.inf)).requires_grad_(True)
    t = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    result = leaves(FAMILY[name](x, temperature=t))
    terms = [
        torch.where(torch.isfinite(value), value, 0.0).sum() * 1.5
        for reading, value in result.items()
        if reading != "count"
    ]
    slopes = torch.autograd.grad(sum(terms), [x, t])
    assert all(torch.isfinite(slope).all() for slope in slopes), slopes
    assert (slopes[0][0, 1, :2] == 0.0).all()


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_a_sparse_row_does_not_depend_on_its_neighbours(alpha: float, make: Any) -> None:
    """Bit for bit: a solver that iterates until the slowest row is done would change the others."""
    x = np.random.default_rng(5).normal(size=(200, 9)) * np.logspace(-3, 3, 200)[:, None]
    together = numpy(ss.entmax(make(x), alpha))
    alone = np.stack([numpy(ss.entmax(make(row), alpha)) for row in x])
    np.testing.assert_array_equal(together, alone)
