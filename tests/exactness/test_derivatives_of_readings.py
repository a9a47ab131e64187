"""Gradients of softmax and of a partition's readings, with respect to x and the temperature."""

import functools

import pytest
import torch
from mpmath import mpf

import softscope as ss
from exactness.compare import Comparison
from oracle import derivatives, readings, rows
from softscope import bounds

READINGS = (
    "lse",
    "entropy",
    "collision",
    "peak",
    "variance",
    "jacobian_trace",
    "effective_support",
    "sharpness",
)
ROWS = {
    "ordinary": (0.3, -1.1, 0.9, 0.85, -0.2),
    "shifted": (1000.25, 1001.5, 999.0, 1001.25),
    "1e-8 from one-hot": (-18.5, 0.0, -19.0, -25.0),
    "hidden": (0.5, float("-inf"), 2.0, -1.0),
}
TEMPERATURE = 0.75


@functools.cache
def wanted(name: str, reading: str) -> tuple[list[mpf], mpf]:
    """The gradient with respect to x and the derivative with respect to the temperature."""

    def value(x: list[mpf], temperature: mpf) -> mpf:
        return getattr(readings.partition(x, temperature), reading)

    row = [rows.exact(v) for v in ROWS[name]]
    by_x = derivatives.gradient(lambda x: value(x, mpf(TEMPERATURE)), row)
    return by_x, derivatives.derivative(lambda t: value(row, t), TEMPERATURE)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("reading", READINGS)
def test_gradients_of_readings(name: str, reading: str) -> None:
    x = torch.tensor(ROWS[name], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([TEMPERATURE], dtype=torch.float64, requires_grad=True)
    getattr(ss.partition(x, temperature=t), reading).sum().backward()
    by_x, by_t = wanted(name, reading)
    # No bound of its own. At the top entry a slope is a difference of numbers of size 1, so near one-hot its
    # error is small relative to 1, not to the slope; PyTorch's own backward pass is no better there.
    scale = max(1, *(abs(v) for v in by_x))
    with Comparison() as compare:
        for j, w in enumerate(by_x):
            what = f"{name}: d {reading} / dx[{j}]"
            compare.check(what, ROWS[name], float(x.grad[j]), w, bounds.readings("float64") * scale)
        what, size = f"{name}: d {reading} / dT", max(scale, abs(by_t))
        compare.check(what, ROWS[name], float(t.grad[0]), by_t, bounds.readings("float64") * size)


@pytest.mark.parametrize("name", ROWS)
def test_gradients_of_softmax(name: str) -> None:
    """The backward pass of softmax is J times the gradient."""
    pull = [0.75, -1.5, 0.25, 2.0, -0.5][: len(ROWS[name])]
    x = torch.tensor(ROWS[name], dtype=torch.float64, requires_grad=True)
    (ss.softmax(x, temperature=TEMPERATURE) * torch.tensor(pull, dtype=torch.float64)).sum().backward()

    def loss(values: list[mpf]) -> mpf:
        return sum(w * mpf(g) for w, g in zip(rows.weights(values, TEMPERATURE), pull, strict=True))

    want = derivatives.gradient(loss, [rows.exact(v) for v in ROWS[name]])
    tolerance = bounds.readings("float64")
    with Comparison() as compare:
        for j, w in enumerate(want):
            compare.check(f"{name}: d/dx[{j}]", ROWS[name], float(x.grad[j]), w, tolerance)
