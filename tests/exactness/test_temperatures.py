"""temperature_for and fit_temperature, against roots to 35 digits and against scipy.optimize."""

import functools

import numpy as np
import pytest
import torch
from mpmath import mp
from scipy import optimize

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import readings, temperatures
from softscope import bounds

ROWS = {
    "ordinary": (2.0, 0.5, -1.25, 1.75, -3.0),
    "shifted": (10002.0, 10000.5, 9998.75, 10001.75),
    "narrow": (0.001, 0.0015, 0.00125),
    "wide": (1e6, -1e6, 0.0, 9e5),
    "tied": (1.0, 1.0, 0.0, -2.0),
    "hidden": (0.5, float("-inf"), 2.0, -1.0),
}
temperature_for = functools.cache(temperatures.temperature_for)
SHARES = (1e-6, 0.01, 0.3, 0.7, 0.99)  # of the way from the coldest to the hottest entropy or peak


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("target", ["entropy", "peak"])
def test_temperature_for(backend: str, dtype: str, name: str, target: str) -> None:
    x = array(ROWS[name], dtype, backend)
    row = floats(x)
    seen = [v for v in row if v != float("-inf")]
    n, ties = len(seen), seen.count(max(seen))
    cold, hot = (np.log(ties), np.log(n)) if target == "entropy" else (1 / ties, 1 / n)
    with Comparison() as compare:
        for share in SHARES:
            goal = float(cold + share * (hot - cold))
            want = temperature_for(tuple(row), **{target: goal})
            got = floats(ss.temperature_for(x, **{target: goal}))
            assert len(got) == 1, f"the axis must be kept, but got {got}"
            # d entropy / d log T is the variance of x/T, d log peak / d log T the mean of (x - m)/T: where
            # they are small, rounding the goal moves the temperature a lot, and the tolerance must allow it.
            at = readings.partition(row, want)
            slope = at.variance / goal if target == "entropy" else at.mean
            tolerance = bounds.readings(dtype) * max(1.0, float(1 / abs(slope)))
            compare.relative(f"{name}: temperature for {target} {goal!r}", row, got[0], want, tolerance)
        # Hotter than the hottest, and colder than the coldest (or, with a unique largest entry, exactly at it).
        past = (1.0001, 0.999) if target == "entropy" else (0.9999, 1.001)
        for goal in (hot * past[0], cold * past[1] if ties > 1 else cold):
            got = floats(ss.temperature_for(x, **{target: float(goal)}))
            compare.check(f"{name}: unreachable {target} {goal}", row, got[0], mp.nan, 0)


def patients() -> tuple[np.ndarray, np.ndarray]:
    """Logits that are right about two times in three, and far too confident."""
    rng = np.random.default_rng(11)
    answers = rng.integers(0, 4, size=60)
    logits = rng.normal(size=(60, 4)).round(3)
    logits[np.arange(60), answers] += 1.5
    return 3.0 * logits, answers


@functools.cache
def fit_temperature() -> temperatures.Calibration:
    logits, answers = patients()
    return temperatures.fit_temperature(logits.tolist(), answers.tolist())


@pytest.mark.parametrize("backend", BACKENDS)
def test_fit_temperature(backend: str) -> None:
    logits, answers = patients()
    x = array(logits, "float64", backend)
    got = ss.fit_temperature(x, torch.from_numpy(answers) if backend == "torch" else answers)
    want = fit_temperature()
    with Comparison() as compare:
        # The location of a minimum has no bound of its own: 1e-8 tells a root of the slope from a blind search.
        compare.relative("temperature", "60 x 4 logits", float(got.temperature), want.temperature, 1e-8)
        for field in ("nll_before", "nll_after"):
            value, exact = float(getattr(got, field)), getattr(want, field)
            compare.relative(field, "60 x 4 logits", value, exact, bounds.readings("float64"))
        compare.check("ece_before", "60 x 4 logits", float(got.ece_before), want.ece_before, bounds.readings("float64"))
        compare.check("ece_after", "60 x 4 logits", float(got.ece_after), want.ece_after, 1e-8)


def test_fit_temperature_is_what_scipy_finds() -> None:
    logits, answers = patients()

    def nll(log_t: float) -> float:
        z = logits / np.exp(log_t)
        return float(np.mean(np.logaddexp.reduce(z, axis=1) - z[np.arange(len(z)), answers]))

    found = optimize.minimize_scalar(nll, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10})
    got = ss.fit_temperature(logits, answers)
    assert float(got.temperature) == pytest.approx(np.exp(found.x), rel=1e-6)
    assert float(got.nll_after) <= found.fun + 1e-13
