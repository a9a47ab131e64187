"""Memory in any order, and arrays that are empty or have one entry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import CALLS, FAMILY, MAPS, READINGS, leaves
from interface.kinds import cast, dtype_of, numpy, same, tensor


def _spread(a: np.ndarray) -> np.ndarray:
    """Every second entry of a larger array, along every axis."""
    big = np.full(tuple(2 * size for size in a.shape), 77, dtype=a.dtype)
    view = big[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


def _unaligned(a: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\0" + a.tobytes(), dtype=a.dtype, offset=1).reshape(a.shape)


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Fortran order": np.asfortranarray,
    "strided": _spread,
    "negative strides": lambda a: np.flip(np.ascontiguousarray(np.flip(a))),
    "last axis first": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "unaligned": _unaligned,
    "read-only": _read_only,
}
TENSOR_LAYOUTS: dict[str, Callable[[np.ndarray], torch.Tensor]] = {
    "transposed": lambda a: tensor(np.moveaxis(a, -1, 0)).contiguous().movedim(0, -1),
    "strided": lambda a: tensor(np.repeat(a, 2, axis=-1))[..., ::2],
    "offset": lambda a: tensor(np.concatenate([a[..., :1], a], axis=-1))[..., 1:],
}


def test_the_layouts_are_what_they_are_called() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    made = {name: layout(a) for name, layout in LAYOUTS.items()}
    assert all((m == a).all() for m in made.values())
    assert not any(made[name].flags.c_contiguous for name in ("Fortran order", "strided", "last axis first"))
    assert min(made["negative strides"].strides) < 0
    assert made["big-endian"].dtype.byteorder == ">"
    assert not made["unaligned"].flags.aligned
    tensors = {name: layout(a) for name, layout in TENSOR_LAYOUTS.items()}
    assert all(not t.is_contiguous() and (t == tensor(a)).all() for t in tensors.values())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_numpy_layouts_give_the_values_of_contiguous_memory(name: str, dtype: str) -> None:
    wanted = leaves(CALLS[name](lambda a: cast(a, dtype)))
    small = 1e-6 if dtype == "float32" else 1e-13
    for layout in LAYOUTS.values():
        got = leaves(CALLS[name](lambda a, lay=layout: lay(cast(a, dtype))))
        for reading, value in got.items():
            same(value, wanted[reading], rtol=small, atol=small)
            if name != "fit_temperature":
                assert dtype_of(value) == dtype_of(wanted[reading])


@pytest.mark.parametrize("layout", TENSOR_LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_tensor_layouts_give_the_values_of_contiguous_memory(name: str, layout: str) -> None:
    got, wanted = leaves(CALLS[name](TENSOR_LAYOUTS[layout])), leaves(CALLS[name](tensor))
    for reading, value in got.items():
        same(value, wanted[reading], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("shape", [(3, 0), (0,), (2, 0, 0)])
def test_an_empty_axis(shape: tuple[int, ...], make: Callable[[Any], Any]) -> None:
    x = make(np.zeros(shape, dtype=np.float32))
    for function in MAPS.values():
        assert tuple(function(x).shape) == shape
        assert dtype_of(function(x)) == "float32"
    same(ss.logsumexp(x), np.full(shape[:-1], -np.inf))
    same(ss.logsumexp(x, keepdims=True), np.full((*shape[:-1], 1), -np.inf))
    readings = leaves(ss.partition(x))
    same(readings.pop("count"), np.zeros(shape[:-1]))
    for name in ("lse", "max_logit"):
        same(readings.pop(name), np.full(shape[:-1], -np.inf))
    assert len(readings) == len(READINGS) - 3
    for value in readings.values():
        same(value, np.full(shape[:-1], np.nan))
    assert tuple(ss.jacobian(x).shape) == (*shape, 0)
    assert tuple(ss.jacobian_product(x, x).shape) == shape
    same(ss.temperature_for(x, entropy=0.5), np.full((*shape[:-1], 1), np.nan))


@pytest.mark.parametrize("make", [np.array, tensor])
def test_no_rows(make: Callable[[Any], Any]) -> None:
    x, none = make(np.zeros((0, 3))), make(np.zeros(0, dtype=np.int64))
    for name, function in FAMILY.items():
        for value in leaves(function(x)).values():
            assert tuple(value.shape) == ((0, 3) if name in MAPS else (0,))
    assert tuple(ss.softmax(x, axis=0).shape) == (0, 3)
    same(ss.logsumexp(x, axis=0), np.full(3, -np.inf))
    same(ss.logsumexp(x, axis=None), np.array(-np.inf))
    assert tuple(ss.jacobian(x).shape) == (0, 3, 3)
    assert tuple(ss.temperature_for(x, peak=0.5).shape) == (0, 1)
    same(ss.cross_entropy(x, none), np.array(0.0))
    same(ss.cross_entropy(x, none, reduction="none"), np.zeros(0))
    drawn = ss.sample(x, rng=np.random.default_rng(0))
    assert tuple(drawn.shape) == (0,)
    assert dtype_of(drawn) == "int64"


@pytest.mark.parametrize("make", [np.array, tensor])
def test_an_axis_of_one(make: Callable[[Any], Any]) -> None:
    x = make(np.array([[-5.0], [0.0], [1e30]]))
    for name, function in MAPS.items():
        same(function(x), np.full((3, 1), 0.0 if name == "log_softmax" else 1.0))
    same(ss.logsumexp(x), x[:, 0])
    p = ss.partition(x)
    for value in (p.entropy, p.sharpness, p.variance, p.jacobian_trace):
        same(value, np.zeros(3))
    for value in (p.peak, p.collision, p.effective_support, p.count):
        same(value, np.ones(3))
    same(ss.jacobian(make(np.ones((3, 1)))), np.zeros((3, 1, 1)))


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize(("n", "m", "d"), [(0, 4, 3), (2, 0, 3), (0, 0, 3), (2, 4, 0), (1, 1, 1)])
def test_attention_of_nothing(n: int, m: int, d: int, make: Callable[[Any], Any]) -> None:
    q, k, v = make(np.ones((2, n, d))), make(np.ones((2, m, d))), make(np.full((2, m, 5), 3.0))
    output, p = ss.attention(q, k, v, return_partition=True)
    same(output, np.full((2, n, 5), 3.0 if m else 0.0))
    same(p.count, np.full((2, n), m))
    same(p.max_logit, np.full((2, n), np.sqrt(d) if m else -np.inf))
    sparse, support = ss.attention(q, k, v, alpha=2.0, return_partition=True)
    same(sparse, output)
    assert numpy(support.size).tolist() == np.full((2, n), m).tolist()
    readings = ss.gradient_readings(q, k, v, make(np.ones((2, n, 5))))
    assert all(tuple(value.shape) == (2, n) for value in readings)
    assert not numpy(readings.blocked).any()
