"""Cross-entropy and distillation against their definitions."""

import numpy as np
import pytest
import torch

import softscope as ss
from exactness.compare import Comparison
from exactness.inputs import BACKENDS, array, floats
from oracle import losses
from oracle.losses import mean_kept
from softscope import bounds

LOGITS = {
    "normals": np.random.default_rng(1).normal(size=(6, 5)).round(6) * 3,
    "shifted": 1e4 + np.random.default_rng(2).normal(size=(6, 5)).round(3) * 3,
    "near one-hot": np.array([[0.0, -18.5, -20.0], [-40.0, 0.0, -41.0], [0.0, -8.0, -9.0]]),
    "far": np.array([[0.0, 5e3, 1.0], [-200.0, 0.0, 90.0]]),
}
LABELS = (2, 0, -100, 1, 2, 1)


def labels(backend: str, values: tuple[int, ...]) -> object:
    return torch.tensor(values) if backend == "torch" else np.asarray(values)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("smoothing", [0.0, 0.125])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", LOGITS)
def test_cross_entropy(backend: str, dtype: str, smoothing: float, temperature: float, name: str) -> None:
    x = array(LOGITS[name], dtype, backend)
    exact, targets = floats(x), LABELS[: len(LOGITS[name])]
    want = losses.cross_entropy(exact, targets, temperature, smoothing)
    options = {"temperature": temperature, "label_smoothing": smoothing}
    got = floats(ss.cross_entropy(x, labels(backend, targets), reduction="none", **options))
    tops = [max(map(abs, row)) / temperature for row in exact]
    # The loss is a log weight; smoothing adds the mean of the others, and with it one more such error.
    allowed = [
        (1 + (smoothing > 0)) * bounds.logsumexp(float(w or 0), top, dtype) for w, top in zip(want, tops, strict=True)
    ]
    with Comparison() as compare:
        for row, g, w, tolerance in zip(exact, got, want, allowed, strict=True):
            compare.check(f"{name}: loss", row, g, w if w is not None else 0, tolerance)
        mean = floats(ss.cross_entropy(x, labels(backend, targets), **options))
        compare.check(f"{name}: mean", exact, mean, mean_kept(want), 2 * max(allowed))
        total = floats(ss.cross_entropy(x, labels(backend, targets), reduction="sum", **options))
        compare.check(
            f"{name}: sum", exact, total, mean_kept(want) * sum(w is not None for w in want), 2 * sum(allowed)
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_ignore_index_and_all_ignored(backend: str) -> None:
    x = array(LOGITS["normals"], "float64", backend)
    targets = (4, 1, 4, 0, 4, 4)
    want = mean_kept(losses.cross_entropy(floats(x), targets, ignore_index=4))
    got = floats(ss.cross_entropy(x, labels(backend, targets), ignore_index=4))
    with Comparison() as compare:
        compare.check("ignore_index 4", floats(x), got, want, bounds.readings("float64"))
        nothing = floats(ss.cross_entropy(x, labels(backend, (-100,) * 6)))
        compare.check("all ignored", floats(x), nothing, 0, 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_distillation_loss(backend: str, dtype: str, temperature: float) -> None:
    rng = np.random.default_rng(3)
    student, teacher = (array(4 * rng.normal(size=(5, 6)).round(4), dtype, backend) for _ in range(2))
    want = losses.distillation_loss(floats(student), floats(teacher), temperature)
    with Comparison() as compare:
        got = floats(ss.distillation_loss(student, teacher, temperature=temperature))
        compare.relative("distillation", floats(student), got, want, bounds.readings(dtype))
        same = floats(ss.distillation_loss(student, student, temperature=temperature))
        compare.check("to itself", floats(student), same, 0, bounds.readings(dtype))
