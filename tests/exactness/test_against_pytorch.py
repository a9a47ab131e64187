"""The largest error over a broad suite is no larger than that of PyTorch's own softmax on the same numbers."""

import functools

import numpy as np
import pytest
import torch

import softscope as ss
from exactness.inputs import BACKENDS, array, floats, limits

SCALES = (0.01, 0.3, 1.0, 3.0, 10.0, 30.0)
LENGTHS = (1, 2, 3, 8, 17, 100, 1000)


@functools.cache
def suite(dtype: str) -> tuple[np.ndarray, ...]:
    """Matrices of random rows: many scales and lengths, shifted and not, and some near one-hot."""
    rng = np.random.default_rng(5)
    matrices = []
    for n in LENGTHS:
        for scale in SCALES:
            x = scale * rng.normal(size=(max(4, 2000 // n), n))
            matrices += [x, x + 100.0 * rng.normal(size=(len(x), 1))]
    hot = -rng.uniform(8.0, 40.0, size=(100, 6))
    hot[:, 0] = 0.0
    return tuple(m.astype(dtype) for m in (*matrices, hot))


def exact(x: np.ndarray) -> np.ndarray:
    """The weights in extended precision: 2048 times finer than float64, and far finer than float32."""
    wide = x.astype(np.longdouble)
    e = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def largest_error(x: np.ndarray, weights: np.ndarray, floor: float) -> float:
    """The largest relative error among weights that are normal numbers."""
    want = exact(x)
    kept = want >= floor
    return float((np.abs(weights.astype(np.longdouble) - want)[kept] / want[kept]).max())


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2e-19, reason="long double is no wider here: run on x86-64 to lift this"
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_largest_error_is_not_above_pytorch(backend: str, dtype: str) -> None:
    floor = limits(dtype).floor
    ours = {}
    theirs = {}
    for index, x in enumerate(suite(dtype)):
        got = np.asarray(floats(ss.softmax(array(x, dtype, backend))))
        ours[index] = largest_error(x, got, floor)
        theirs[index] = largest_error(x, torch.softmax(torch.from_numpy(x), -1).numpy(), floor)
    worst = max(ours, key=ours.__getitem__)
    u = float(np.finfo(dtype).eps) / 2
    assert ours[worst] <= max(theirs.values()), (
        f"input     matrix {worst} of the suite, shape {suite(dtype)[worst].shape}\n"
        f"got       {ours[worst] / u:.3f} u\n"
        f"wanted    at most {max(theirs.values()) / u:.3f} u, PyTorch's largest"
    )
