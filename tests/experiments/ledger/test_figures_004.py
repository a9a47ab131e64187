"""The figures behind text 004's verdicts, against derivations that share nothing with the code that measured them."""

import math
import re

import pytest

from softscope.experiments.ledger.texts import text_004_gain as gain
from softscope.experiments.ledger.texts import text_004_jacobian as jacobian


def test_the_norm_of_the_jacobian_on_the_way_to_one_hot():
    """For [gap, 0, 0, 0] the Jacobian has four kinds of entries."""
    norms = []
    for gap in (0, 1, 2, 5, 10, 20, 50):
        other = 1.0 / (math.exp(gap) + 3.0)
        first, rest = math.exp(gap) * other, 3.0 * other
        squares = (first * rest) ** 2 + 6 * (first * other) ** 2 + 3 * (other * (1 - other)) ** 2 + 6 * other**4
        norms.append(f"{math.sqrt(squares):.1e}")
    assert f"[{', '.join(norms)}]" in jacobian._s4_14.check().measured.en


@pytest.mark.parametrize("claim", [gain._s4_05, gain._s4_06, gain._s4_09])
def test_powers_are_those_of_arithmetic(claim):
    shown = claim.check().measured
    k = float(re.match(r"k = ([\d.]+)", shown)[1])
    powers = {float(a): power for a, power in re.findall(r"a = ([\d.]+): a′ = ([\d.]+)", shown)}
    assert powers == {a: f"{a**k:.3f}" for a in (0.5, 1.0, 2.0)}
