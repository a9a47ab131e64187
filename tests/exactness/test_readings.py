"""What a partition reports, including near one-hot, where one minus a weight has no digits left."""

from typing import Any

import pytest

import softscope as ss
from exactness import wanted
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, DTYPES, TEMPERATURES, array, cases, floats, in_range, limits
from exactness.logs import allowed
from oracle.readings import Readings
from softscope import bounds

DOUBLE = limits("float64")  # readings are float64 for any input


def tolerances(want: Readings, dtype: str) -> dict[str, float]:
    """The relative error allowed for each reading."""
    relative = bounds.readings(dtype)
    mean, variance = float(want.mean), float(want.variance)
    return {
        "entropy": relative,
        "collision": relative,
        "peak": relative,
        "jacobian_trace": relative,
        "variance": bounds.variance(mean, variance, dtype) if variance > DOUBLE.floor else relative,
        "effective_support": relative * max(1.0, float(want.entropy)),  # exp turns an error in H into a ratio
        "count": 0.0,
        "max_logit": 0.0,
    }


def compare_readings(
    compare: Comparison, name: str, row: tuple, got: Any, want: Readings, dtype: str, temperature: float, backend: str
) -> None:
    """Check every reading of one row against its bound."""
    for reading, tolerance in tolerances(want, dtype).items():
        value, exact = floats(getattr(got, reading)), getattr(want, reading)
        compare.relative(f"{name}: {reading}", row, value, exact, tolerance, floor=DOUBLE.floor)
    # Sharpness is one minus a ratio with that error: near uniform, only its absolute error is small.
    compare.check(f"{name}: sharpness", row, floats(got.sharpness), want.sharpness, bounds.readings(dtype))
    exact = in_range(want.lse, "float64"), in_range(want.max_logit / temperature, "float64")
    log_z, mean = max(float(want.entropy + want.mean), 0.0), abs(float(want.mean))
    tolerance = allowed(*exact, log_z, mean, dtype, backend)
    compare.check(f"{name}: lse", row, floats(got.lse), want.lse, tolerance, largest=DOUBLE.largest)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_partition(backend: str, dtype: str, temperature: float) -> None:
    with Comparison() as compare:
        for name, row in cases(dtype):
            got = ss.partition(array(row, dtype, backend), temperature=temperature)
            compare_readings(compare, name, row, got, wanted.partition(row, temperature), dtype, temperature, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_merged_parts(backend: str, dtype: str, temperature: float) -> None:
    """The state of a row merged from three parts is as exact as the state of the whole row."""
    with Comparison() as compare:
        for name, row in cases(dtype):
            cut = len(row) // 3, len(row) // 2
            parts = [row[: cut[0]], row[cut[0] : cut[1]], row[cut[1] :]]
            states = [ss.partition(array(p, dtype, backend), temperature=temperature) for p in parts if p]
            got = states[-1]
            for state in states[-2::-1]:
                got = got.merge(state)
            compare_readings(
                compare, f"{name}, merged", row, got, wanted.partition(row, temperature), dtype, temperature, backend
            )


@pytest.mark.parametrize("backend", BACKENDS)
def test_where(backend: str) -> None:
    row, see = (9.0, 0.5, -1.0, 300.0, 0.25), (False, True, True, False, True)
    with Comparison() as compare:
        for dtype in ("float32", "float64"):
            got = ss.partition(array(row, dtype, backend), where=array(see, dtype, backend) > 0, temperature=0.5)
            compare_readings(compare, f"visible {see}", row, got, wanted.partition(row, 0.5, see), dtype, 0.5, backend)
