"""Sparsemax and entmax: the right support, the right weights, and no NaN for any finite input."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import softscope as ss
from exactness import wanted
from exactness.compare import Comparison, number
from exactness.inputs import BACKENDS, DTYPES, Case, array, cases, floats
from softscope import bounds

ALPHAS = (1.0, 1 + 1e-8, 1.05, 1.25, 1.5, 1.75, 1.999, 2.0, 2 + 1e-12, 3.0, 10.0, 1e4)
SPARSE_TEMPERATURES = (0.01, 1.0, 3.0)


def short_cases(dtype: str) -> list[Case]:
    """The cases an oracle can solve quickly for any alpha."""
    return [case for case in cases(dtype) if len(case.row) <= 50]


def compare_weights(
    compare: Comparison, name: str, row: tuple, got: list[float], want: list, gaps: list, dtype: str
) -> None:
    """Check the support and values of one row; a gap is how far an entry lies below the threshold."""
    support = bounds.support(dtype)
    tolerance = max(bounds.readings(dtype), support)
    for x, g, w, gap in zip(row, got, want, gaps, strict=True):
        compare.check(f"{name}: weight of {x!r}", row, g, w, tolerance)
        if w >= support:
            assert g > 0, f"{name}: {x!r} has the weight {float(w)} but fell out of the support of {row}"
        elif gap > 1e-3:
            assert g == 0, f"{name}: {x!r} lies {float(gap)} below the threshold but has the weight {g} in {row}"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", SPARSE_TEMPERATURES)
def test_sparsemax(backend: str, dtype: str, temperature: float) -> None:
    with Comparison() as compare:
        for name, row in cases(dtype):
            want = wanted.sparsemax(row, temperature)
            lowest = min(Fraction(x) for x, w in zip(row, want, strict=True) if w > 0)
            smallest = min(w for w in want if w > 0)
            gaps = [_below(x, lowest, smallest, temperature) for x in row]
            got = floats(ss.sparsemax(array(row, dtype, backend), temperature=temperature))
            compare_weights(compare, name, row, got, want, gaps, dtype)


def _below(x: float, lowest: Fraction, smallest: Fraction, temperature: float) -> float:
    """How far x/T lies below the threshold, which is the lowest support entry minus its weight, the smallest."""
    if x == -math.inf:
        return math.inf
    gap = (lowest - Fraction(x)) / Fraction(temperature) - smallest
    return float(min(gap, Fraction(1)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_entmax(backend: str, dtype: str, alpha: float) -> None:
    with Comparison() as compare:
        for temperature in (0.5, 1.0):
            for name, row in short_cases(dtype):
                want = wanted.entmax(row, alpha, temperature)
                gaps = [mpf(0)] * len(row)
                if alpha > 1:
                    tau = wanted.tau(row, alpha, temperature)
                    gaps = [tau - (mpf(alpha) - 1) * number(x) / temperature for x in row]
                got = floats(ss.entmax(array(row, dtype, backend), alpha, temperature=temperature))
                compare_weights(compare, f"alpha {alpha}, T {temperature}, {name}", row, got, want, gaps, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0, 4.0])
def test_entmax_in_half_precision(backend: str, dtype: str, alpha: float) -> None:
    with Comparison() as compare:
        for name, row in short_cases(dtype):
            got = floats(ss.entmax(array(row, dtype, backend), alpha))
            for x, g, w in zip(row, got, wanted.entmax(row, alpha), strict=True):
                compare.check(f"alpha {alpha}, {name}: weight of {x!r}", row, g, w, bounds.support(dtype))


WIDTH = {"float16": 16, "float32": 32, "float64": 64}


@st.composite
def finite_rows(draw: st.DrawFn) -> tuple[list[float], str, float, float]:
    """Any finite floats of any dtype, any finite alpha, any ordinary temperature."""
    dtype = draw(st.sampled_from(sorted(WIDTH)))
    finite = st.floats(allow_nan=False, allow_infinity=False, width=WIDTH[dtype])
    row = draw(st.lists(st.one_of(finite, st.floats(-4, 4, width=16)), min_size=1, max_size=12))
    near_1 = st.floats(0, 52).map(lambda e: 1 + 2.0**-e)
    beyond_2 = st.one_of(st.floats(2, 20), st.floats(1, 1023).map(lambda e: 2.0**e), st.just(1.7976931348623157e308))
    alpha = draw(st.one_of(st.floats(1, 2), st.sampled_from(ALPHAS), near_1, beyond_2))
    return row, dtype, alpha, draw(st.sampled_from([0.01, 1.0, 100.0]))


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=250)
@given(finite_rows())
def test_no_finite_input_gives_nan(backend: str, drawn: tuple[list[float], str, float, float]) -> None:
    row, dtype, alpha, temperature = drawn
    x = array(row, dtype, backend)
    for what, got in (
        (f"entmax alpha {alpha!r}", floats(ss.entmax(x, alpha, temperature=temperature))),
        ("sparsemax", floats(ss.sparsemax(x, temperature=temperature))),
    ):
        told = f"{what} of {row} in {dtype} at T {temperature}: got {got}"
        assert all(0 <= g <= 1 for g in got), told
        assert abs(math.fsum(got) - 1) <= bounds.sum_to_one(len(row), dtype) + len(row) * bounds.support(dtype), told


@settings(max_examples=150)
@given(finite_rows())
def test_no_finite_input_gives_a_nan_gradient(drawn: tuple[list[float], str, float, float]) -> None:
    row, dtype, alpha, temperature = drawn
    x = array(row, dtype, "torch").requires_grad_()
    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    pull = torch.linspace(-1, 1, len(row), dtype=x.dtype)
    (ss.entmax(x, a, temperature=temperature) * pull).sum().backward()
    told = f"entmax alpha {alpha!r} of {row} in {dtype} at T {temperature}: {x.grad}"
    # Beyond alpha 2, p^(2 - alpha) of two small weights leaves the range; that is infinite, but never NaN.
    assert not torch.isnan(x.grad).any(), told
    assert alpha > 2 or torch.isfinite(x.grad).all(), told
    assert torch.isfinite(a.grad), f"entmax alpha {alpha!r} of {row} in {dtype} at T {temperature}: d alpha {a.grad}"
