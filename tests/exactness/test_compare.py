"""The comparison itself: it fails when it should, says why, and never passes without checking anything."""

import math

import pytest

from exactness.compare import Comparison
from exactness.inputs import DTYPES, cases, limits


@pytest.mark.parametrize(
    ("got", "wanted", "tolerance"),
    [(1.1, 1.0, 0.05), (math.nan, 1.0, 1.0), (math.nan, 1.0, math.inf), (math.inf, 1.0, 1.0), (0.0, math.nan, 1.0)],
)
def test_it_fails_and_says_why(got: float, wanted: float, tolerance: float) -> None:
    with pytest.raises(AssertionError) as failure, Comparison() as compare:
        compare.relative("a number", [1.5, 2.5], got, wanted, tolerance)
    for word in ("a number", "input", "1.5, 2.5", "got", "wanted", "error", "tolerance"):
        assert word in str(failure.value)


def test_it_passes_what_is_right() -> None:
    with Comparison() as compare:
        compare.check("close", [], 1.0, 1.01, 0.02)
        compare.check("both NaN", [], math.nan, math.nan, 0)
        compare.check("both infinite", [], -math.inf, -math.inf, 0)
        compare.check("overflow", [], math.inf, 1e300, 0, largest=1e200)
        compare.check("underflow", [], 0.0, 1e-300, 0, floor=1e-290)
    assert compare.checked == 5


def test_overflow_and_underflow_have_their_limits() -> None:
    for got, wanted in ((-math.inf, 1e300), (1e-280, 1e-300), (math.nan, 1e-300)):
        with pytest.raises(AssertionError), Comparison() as compare:
            compare.check("beyond", [], got, wanted, 0, floor=1e-290, largest=1e200)


def test_comparing_nothing_fails() -> None:
    with pytest.raises(AssertionError, match="nothing was compared"), Comparison():
        pass


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_class_of_input_is_there(dtype: str) -> None:
    names = [case.name for case in cases(dtype)]
    assert len(names) == len(set(names)) >= 35
    for word in ("normals", "shifted", "ties", "one-hot", "-inf", "denormal", "huge", "length 1", "1000"):
        assert any(word in name for name in names), word
    values = [abs(v) for case in cases(dtype) for v in case.row]
    assert max(v for v in values if v != math.inf) == limits(dtype).largest
    assert 0 < min(v for v in values if v) < limits(dtype).floor
