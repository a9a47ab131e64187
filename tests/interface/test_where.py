"""`where`: a hidden entry does not exist, whatever it holds; a row with everything hidden is not an error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import FAMILY, MAPS, READINGS, X, leaves
from interface.kinds import numpy, same, tensor
from interface.refused import refused

SHOWN = np.random.default_rng(9).random(X.shape) < 0.6
SHOWN[0, 0] = [True, False, True, True]
SHOWN[1, 1] = False  # everything hidden
TEMPERATURES = [1.0, 0.3, np.full((2, 3, 1), 0.3)]


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
@pytest.mark.parametrize("name", FAMILY)
def test_hidden_entries_are_as_if_cut_out(name: str, temperature: Any, make: Callable[[Any], Any]) -> None:
    t = make(temperature) if isinstance(temperature, np.ndarray) else temperature
    got = leaves(FAMILY[name](make(X), temperature=t, where=make(SHOWN)))
    number = 1.0 if temperature is TEMPERATURES[0] else 0.3
    checked = 0
    for i in np.ndindex(2, 3):
        row = leaves(FAMILY[name](X[i][SHOWN[i]], temperature=number))
        for reading, value in got.items():
            entries = numpy(value)[i]
            same(entries[SHOWN[i]] if name in MAPS else entries, row[reading])
            checked += 1
            if name in MAPS:
                rest = entries[~SHOWN[i]]
                assert (rest == (-np.inf if name == "log_softmax" else 0.0)).all()
    assert checked >= 6


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("temperature", TEMPERATURES, ids=["1", "0.3", "array"])
def test_a_row_with_nothing_in_it(temperature: Any, make: Callable[[Any], Any]) -> None:
    options = {"where": make(SHOWN), "temperature": make(temperature) if np.ndim(temperature) else temperature}
    for name, function in MAPS.items():
        same(function(make(X), **options)[1, 1], np.full(4, -np.inf if name == "log_softmax" else 0.0))
    same(ss.logsumexp(make(X), **options)[1, 1], np.array(-np.inf))
    readings = {name: value[1, 1] for name, value in leaves(ss.partition(make(X), **options)).items()}
    assert int(readings.pop("count")) == 0
    for name in ("lse", "max_logit"):
        same(readings.pop(name), np.array(-np.inf))
    assert len(readings) == len(READINGS) - 3
    for name, value in readings.items():
        assert np.isnan(numpy(value)), name
    t = ss.temperature_for(make(X), entropy=0.3, where=make(SHOWN))
    assert np.isnan(numpy(t)[1, 1, 0])
    assert np.isfinite(numpy(t)[0, 0, 0])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", FAMILY)
def test_what_is_hidden_is_not_looked_at(name: str, make: Callable[[Any], Any]) -> None:
    wanted = leaves(FAMILY[name](make(X), where=make(SHOWN), temperature=0.7))
    for garbage in (np.nan, np.inf, -np.inf, 1e308):
        got = leaves(FAMILY[name](make(np.where(SHOWN, X, garbage)), where=make(SHOWN), temperature=0.7))
        for reading, value in got.items():
            same(value, wanted[reading])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", FAMILY)
def test_where_broadcasts(name: str, make: Callable[[Any], Any]) -> None:
    for shown in ([True, False, True, True], [[True], [True], [False]], [[[False]], [[True]]], True, False):
        got = leaves(FAMILY[name](make(X), where=shown))
        wanted = leaves(FAMILY[name](make(X), where=make(np.broadcast_to(shown, X.shape))))
        for reading, value in got.items():
            same(value, wanted[reading])


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("temperature", ["number", "tensor"])
def test_gradients_stay_finite_beside_a_hidden_row(name: str, temperature: str) -> None:
    x = tensor(np.where(SHOWN, X, np.nan)).requires_grad_(True)
    t = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    result = leaves(FAMILY[name](x, where=tensor(SHOWN), temperature=t if temperature == "tensor" else 2.0))
    total = torch.zeros((), dtype=torch.float64)
    for reading, value in result.items():
        if reading != "count":
            rows = value[tensor(SHOWN)] if name in MAPS else value[tensor(SHOWN.any(axis=-1))]
            total = total + (rows * torch.linspace(1.0, 2.0, rows.numel())).sum()
    wanted = [x, t] if temperature == "tensor" else [x]
    slopes = torch.autograd.grad(total, wanted)
    assert all(torch.isfinite(slope).all() for slope in slopes), slopes
    assert (slopes[0][~tensor(SHOWN)] == 0.0).all()
    assert (slopes[0] != 0.0).any()


@pytest.mark.parametrize("name", MAPS)
def test_an_upstream_gradient_at_a_hidden_row_goes_nowhere(name: str) -> None:
    x = tensor(X).requires_grad_(True)
    t = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    y = MAPS[name](x, where=tensor(SHOWN), temperature=t)
    slopes = torch.autograd.grad(y, [x, t], torch.full_like(y, 2.0))
    assert all(torch.isfinite(slope).all() for slope in slopes), slopes
    assert (slopes[0][1, 1] == 0.0).all()


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", [*FAMILY, "temperature_for"])
@pytest.mark.parametrize("wrong", [np.ones(X.shape), np.ones(X.shape, dtype=np.int64), np.full(X.shape, "y")])
def test_other_than_boolean_is_refused(name: str, wrong: np.ndarray, make: Callable[[Any], Any]) -> None:
    wrong = make(wrong) if wrong.dtype.kind != "U" else wrong
    options = {"entropy": 0.5} if name == "temperature_for" else {}
    kind = str(wrong.dtype).rpartition(".")[2]
    refused(lambda: getattr(ss, name)(make(X), where=wrong, **options), "where", "boolean", kind)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", [*FAMILY, "temperature_for"])
def test_a_shape_that_does_not_fit_is_refused(name: str, make: Callable[[Any], Any]) -> None:
    options = {"entropy": 0.5} if name == "temperature_for" else {}
    for shape in ((3, 3), (2, 3), (5, 2, 3, 4), (1, 2, 3, 4)):
        options["where"] = make(np.ones(shape, dtype=bool))
        refused(lambda: getattr(ss, name)(make(X), **options), "where", str(shape), "(2, 3, 4)")
