"""The figures behind text 000's verdicts, against derivations that share nothing with the code that measured them."""

import math

import mpmath
import numpy as np
import pytest

from softscope.experiments.ledger.texts import dot_products, saturated
from softscope.experiments.ledger.texts import text_000_derivative as derivative
from softscope.experiments.ledger.texts import text_000_slopes as slopes


def in_many_digits(x):
    with mpmath.workdps(60):
        e = [mpmath.exp(v) for v in x]
        return [v / sum(e) for v in e]


@pytest.mark.parametrize("row", [[2.0, 2.5], [200.0, 250.0], [0.0, 20.0, 19.0]])
@pytest.mark.parametrize("entry", [0, 1])
def test_the_slope_is_exact_near_one_hot(row, entry):
    with mpmath.workdps(60):
        s = in_many_digits(row)[entry]
        wanted = float(s * (1 - s))
    assert saturated.slope(row, entry) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("target", [0, 1])
def test_the_gradient_of_cross_entropy_is_the_weights_minus_the_target(target):
    wanted = [float(s) - (i == target) for i, s in enumerate(in_many_digits([1.0, 3.0, -2.0]))]
    np.testing.assert_allclose(saturated.cross_entropy_gradient([1.0, 3.0, -2.0], target), wanted, rtol=1e-12)


def test_the_lead_from_which_float64_says_one():
    """1 + e^−lead rounds to 1 as soon as e^−lead is below half a unit in the last place."""
    assert slopes._lead_that_rounds_to_one() == math.ceil(53 * math.log(2.0)) == 37


def test_how_rare_a_score_of_60_is():
    """By inverting the characteristic function of q·k, (1 + t²)^(−d/2): one in 246, and one in 123 with −60."""
    tail = mpmath.quad(lambda t: mpmath.sin(60 * t) / t * (1 + t * t) ** -256, mpmath.linspace(0, 1, 41)) / mpmath.pi
    either = float(1 - 2 * tail)
    assert dot_products.outside(512, 60.0 / math.sqrt(512.0)) == pytest.approx(either, rel=1e-4)
    assert [round(1 / either), round(2 / either)] == [123, 246]


@pytest.mark.parametrize("n", [2, 6, 7, 50])
def test_steps_of_learning_follow_the_gap(n):
    """All entries but one stay equal, so one number, their gap, tells the whole row."""
    gap, steps = 0.0, 0
    while (first := 1.0 / (1.0 + (n - 1) * math.exp(-gap))) < 0.9:
        gap, steps = gap + first * (1.0 - first) + first * (1.0 - first) / (n - 1), steps + 1
    assert derivative._steps_to_win(n) == steps


def test_up_to_how_many_entries_the_slope_is_large():
    """(n − 1)/n² ≥ 1/8 for n ≤ 4 + √8."""
    assert "up to 6 the slope" in derivative._s0_15.check().only_if.en
    assert math.floor(4.0 + math.sqrt(8.0)) == 6
