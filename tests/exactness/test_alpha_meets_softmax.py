"""alpha -> 1 approaches softmax, and alpha -> 2 from both sides sparsemax: values, and gradients in x and alpha."""

import functools
import math

import pytest
import torch
from mpmath import mp, mpf

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import derivatives, sparse
from softscope import bounds

STEPS = (0.0, 2.0**-52, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
ALPHAS = (
    *(1 + step for step in STEPS),
    1.9,
    2 - 1e-4,
    2 - 1e-8,
    2 - 1e-12,
    2.0,
    2 + 1e-12,
    2 + 1e-8,
    2 + 1e-4,
    2.5,
    3.0,
    10.0,
)
ROWS = {
    "ordinary": (0.3, -1.1, 0.9, 0.85, -0.2, 0.0),
    "spread": (2.0, 0.5, -1.25, 1.75, -3.0),
    "near one-hot": (0.0, -18.5, -19.0, -25.0),
    "tied": (1.0, 1.0, 0.25),
    "far": (5.0, -40.0, 4.25, -700.0),
}
PULL = (0.75, -1.5, 0.25, 2.0, -0.5, 1.0)

every_row = pytest.mark.parametrize("name", ROWS)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


@functools.cache
def wanted_gradients(name: str, alpha: float) -> tuple[list[mpf], mpf]:
    """The gradients of sum(pull * entmax(x, alpha)) with respect to x and alpha, by finite differences."""
    row = ROWS[name]

    def loss(x: list[mpf], a: mpf) -> mpf:
        return mp.fsum(w * mpf(pull) for w, pull in zip(sparse.entmax(x, a), PULL, strict=False))

    by_x = derivatives.gradient(lambda x: loss(x, mpf(alpha)), row, digits=160)
    return by_x, derivatives.derivative(lambda a: loss([mpf(v) for v in row], a), alpha, digits=160)


@pytest.mark.parametrize("backend", BACKENDS)
@every_row
@every_alpha
def test_value(backend: str, name: str, alpha: float) -> None:
    row = ROWS[name]
    with Comparison() as compare:
        for dtype in ("float32", "float64"):
            got = floats(ss.entmax(array(row, dtype, backend), alpha))
            exact = [float(v) for v in floats(array(row, dtype, backend))]
            for x, g, w in zip(row, got, sparse.entmax(exact, alpha), strict=True):
                compare.check(f"{dtype}, alpha {alpha!r}: weight of {x}", row, g, w, bounds.readings(dtype))


@every_row
@every_alpha
def test_gradients(name: str, alpha: float) -> None:
    row = ROWS[name]
    x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    a = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    (ss.entmax(x, a) * torch.tensor(PULL[: len(row)], dtype=torch.float64)).sum().backward()
    by_x, by_alpha = wanted_gradients(name, alpha)
    # Gradients have no bound of their own: use that of the readings, relative to the largest entry.
    tolerance = bounds.readings("float64") * max(1e-3, *(float(abs(v)) for v in by_x))
    with Comparison() as compare:
        for j, (g, w) in enumerate(zip(x.grad.tolist(), by_x, strict=True)):
            compare.check(f"alpha {alpha!r}: d/dx[{j}]", row, g, w, tolerance)
        allowed = 100 * bounds.readings("float64") * max(1.0, float(abs(by_alpha)))
        compare.check(f"alpha {alpha!r}: d/dalpha", row, float(a.grad), by_alpha, allowed)


@pytest.mark.parametrize("backend", BACKENDS)
@every_row
def test_a_small_step_in_alpha_moves_little(backend: str, name: str) -> None:
    """From one alpha in the list to the next, the weights move by at most the step times the largest slope."""
    x = array(ROWS[name], "float64", backend)
    start = floats(ss.softmax(x))
    for step in STEPS[:8]:
        moved = max(abs(a - b) for a, b in zip(floats(ss.entmax(x, 1 + step)), start, strict=True))
        assert moved <= 20 * step + bounds.readings("float64"), f"{ROWS[name]}: {moved} from softmax at 1 + {step}"
    assert math.isclose(sum(start), 1, rel_tol=1e-14)
