"""logsumexp and log_softmax where maximum and result are among the smallest numbers there are."""

from __future__ import annotations

import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import softscope as ss
from softscope import _engine, bounds

TEMPERATURES = [1e-5, 0.1, 0.7, 1.0, 3.0]
MAXIMA = [0.0, 1e-310, -2e-308, 4e-308, 1e-300]


def exact(row: np.ndarray, temperature: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """max/T and log z."""
    with mpmath.workprec(200):
        top = row.max()
        others = [mpmath.exp((mpmath.mpf(x) - mpmath.mpf(top)) / temperature) for x in row[row != top]]
        ties = int((row == top).sum())
        return mpmath.mpf(top) / mpmath.mpf(temperature), mpmath.log(ties) + mpmath.log1p(mpmath.fsum(others) / ties)


def worst(seed: int, temperature: float) -> tuple[float, str]:
    """The largest error in units of its bound."""
    rng = np.random.default_rng(seed)
    found = (0.0, "")
    for maximum in MAXIMA:
        for n in (2, 9, 40):
            x = temperature * (rng.uniform(-746, -700) + rng.normal(size=(5, n)))
            x[:, 0] = temperature * maximum
            layouts = {"rows": (x, -1), "columns": (np.ascontiguousarray(x.T), 0)}
            for layout, (given, axis) in layouts.items():
                lse = ss.logsumexp(given, axis=axis, temperature=temperature)
                top = ss.log_softmax(given, axis=axis, temperature=temperature).max(axis=axis)
                for i in range(2):
                    center, log = exact(x[i], temperature)
                    for name, got, wanted in (("lse", lse[i], center + log), ("log weight", top[i], -log)):
                        bound = bounds.logsumexp(float(wanted), float(center), "float64")
                        off = float(abs(mpmath.mpf(float(got)) - wanted) / mpmath.mpf(bound))
                        found = max(found, (off, f"{name}, {layout}, n = {n}, maximum {maximum}, seed {seed}"))
    return found


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_the_smallest_maxima_keep_the_bound(temperature: float) -> None:
    """What x/T loses is below the smallest number there: a double-double of it was wrong by 1/T roundings."""
    off, where = max(worst(seed, temperature) for seed in range(3))
    assert off <= 1.0, f"{off} of the bound: {where}"


@pytest.mark.parametrize("isa", [isa for isa in _engine.isas() if isa != _engine.isa()])
def test_on_the_other_instruction_sets(isa: str) -> None:
    code = f"from exactness.test_tiny_logs import worst; print(max(worst(0, t) for t in {TEMPERATURES})[0])"
    environment = {**os.environ, "SOFTSCOPE_ISA": isa, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 1.0
