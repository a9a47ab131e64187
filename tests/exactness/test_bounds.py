"""The bounds themselves: as promised, and no looser."""

import ml_dtypes
import numpy as np
import pytest

from exactness.inputs import DTYPES, numpy_dtype
from softscope import bounds


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bounds_are_those_promised(dtype: str) -> None:
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    u = float(info.eps) / 2
    assert bounds.weights(0.0, 1.0, dtype) <= 5 * u
    assert bounds.weights(7.0, 1.0, dtype) <= 12 * u
    assert bounds.weights(7.0, 0.5, dtype) <= (5 + 3 * 14) * u
    assert bounds.sum_to_one(16, dtype) <= 8 * u
    assert bounds.support(dtype) <= 4 * u
    assert bounds.readings(dtype) <= (1e-12 if dtype == "float64" else 1e-5)
    assert bounds.variance(3.0, 2.0, dtype) <= bounds.readings(dtype) * 5.5
    assert bounds.sensitivity(1.0, 2.0, dtype) <= 5 * u
    assert bounds.sensitivity(1.0, 12.0, dtype) <= 45 * u
    assert bounds.moved(1e-3, 2.0) <= 2e-3
    assert bounds.moved(1e-4, 3.0) <= 0.0200001


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [1.0, 1.5, 1.999, 3.0, 1023.0, 0.7])
def test_two_ulp_are_two_ulp(dtype: str, value: float) -> None:
    """An ulp is the distance to the next float: just below a power of two it is only half of 2u times the value."""
    spacing = float(np.spacing(numpy_dtype(dtype).type(value)))
    for result, maximum in ((value, 0.0), (0.1, -value), (-value, value)):
        got = bounds.logsumexp(result, maximum, dtype)
        assert got <= 2 * spacing, f"2 ulp of {value} are {2 * spacing}, the bound says {got}"


def test_beyond_the_range_there_is_no_small_ulp() -> None:
    """Where max(x)/T overflows, the bound must not fall back to that of a number of size 1."""
    for result, maximum in ((1e300, float("inf")), (float("-inf"), 0.0)):
        assert bounds.logsumexp(result, maximum, "float64") >= bounds.logsumexp(1e308, 1e308, "float64")
