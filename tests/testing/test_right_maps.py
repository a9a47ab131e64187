"""Plain softmax, sparsemax and entmax keep every property, in every dtype, with their true Lipschitz constant."""

from __future__ import annotations

import numpy as np
import pytest

from softscope.testing import PROPERTIES, check_simplex_map

from .right_maps import RIGHT, entmax_row, softmax, sparsemax, with_options


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", RIGHT)
def test_holds_everything(name: str, dtype: type) -> None:
    report = check_simplex_map(RIGHT[name], axis=True, where=True, dtype=dtype, lipschitz=1.0)
    report.raise_if_broken()
    assert all(result.status == "held" for result in report.results if result.counts), str(report)
    assert tuple(result.property for result in report.results) == PROPERTIES


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", RIGHT)
def test_holds_for_other_random_inputs(name: str, seed: int) -> None:
    check_simplex_map(RIGHT[name], seed=seed, lipschitz=1.0).raise_if_broken()


@pytest.mark.parametrize("alpha", [1.01, 1.5, 1.99])
def test_the_constant_is_that_of_two_equal_weights(alpha: float) -> None:
    """2^(α−2): just enough passes, and one percent less fails."""
    f = with_options(lambda x: entmax_row(x, alpha))
    constant = 2.0 ** (alpha - 2.0)
    assert check_simplex_map(f, lipschitz=constant * 1.0001)["continuity"].status == "held"
    assert check_simplex_map(f, lipschitz=constant * 0.99)["continuity"].status == "broken"


@pytest.mark.parametrize("temperature", [100.0, 2.0, 0.1, 0.01])
def test_a_temperature_divides_the_constant(temperature: float) -> None:
    report = check_simplex_map(lambda x: sparsemax(x / temperature), lipschitz=1.0001 / temperature)
    report.raise_if_broken()
    report = check_simplex_map(lambda x: sparsemax(x / temperature), lipschitz=0.99 / temperature)
    assert [result.property for result in report.broken] == ["continuity"]


@pytest.mark.parametrize("temperature", [1 / 16, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("f", [softmax, sparsemax], ids=["softmax", "sparsemax"])
def test_the_default_takes_the_usual_temperatures(f: object, temperature: float) -> None:
    check_simplex_map(lambda x: f(x / temperature)).raise_if_broken()  # type: ignore[operator]


def test_a_map_that_answers_in_float32_is_judged_in_float32() -> None:
    check_simplex_map(lambda x: softmax(np.asarray(x, dtype=np.float32))).raise_if_broken()


def test_zeros_for_a_row_of_minus_infinity_are_as_good_as_nan() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return np.zeros(x.shape) if np.isneginf(x).all() else softmax(x)

    check_simplex_map(f).raise_if_broken()


@pytest.mark.parametrize(("alpha", "status"), [(1.1, "held"), (1.5, "held"), (1.8, "held"), (2.0, "broken")])
def test_kinks_are_told_and_do_not_count(alpha: float, status: str) -> None:
    f = sparsemax if alpha == 2.0 else with_options(lambda x: entmax_row(x, alpha))
    report = check_simplex_map(f)
    assert report["smooth"].status == status
    assert not report["smooth"].counts
    assert report.passed


def test_the_kink_of_sparsemax_is_where_a_weight_reaches_zero() -> None:
    """With two logits, that is where they are 1 apart."""
    x = check_simplex_map(sparsemax)["smooth"].input
    assert abs(abs(x[0] - x[1]) - 1.0) < 1e-9
