"""`axis` as an int, a tuple or None equals moving the axis by hand, for every function that has it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import FAMILY, MAPS, OTHER, WEIGHTS, X, leaves
from interface.kinds import same, tensor
from interface.refused import refused

AXES = [0, 1, 2, -1, -2, -3, (1,), (0, 2), (2, 0), (-1, -3), (1, 2), (0, 1, 2), None, np.int64(1)]
ONE = [axis for axis in AXES if not isinstance(axis, tuple) and axis is not None]
SHOWN = np.random.default_rng(5).random(X.shape) < 0.7


def positions(axis: Any) -> list[int]:
    """The axes as non-negative numbers, sorted."""
    axes = range(3) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sorted(int(a) % 3 for a in axes)


def brought(a: np.ndarray, axis: Any) -> np.ndarray:
    """Move the axes to the end and merge them into one."""
    axes = positions(axis)
    return np.moveaxis(a, axes, range(-len(axes), 0)).reshape(*(n for i, n in enumerate(a.shape) if i not in axes), -1)


def returned(rows: np.ndarray, axis: Any) -> np.ndarray:
    """The inverse of `brought`."""
    axes = positions(axis)
    lead = [n for i, n in enumerate(X.shape) if i not in axes]
    return np.moveaxis(rows.reshape(*lead, *(X.shape[i] for i in axes)), range(-len(axes), 0), axes)


def kept(axis: Any) -> tuple[int, ...]:
    return tuple(1 if i in positions(axis) else n for i, n in enumerate(X.shape))


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", FAMILY)
def test_the_family(name: str, axis: Any, make: Callable[[Any], Any]) -> None:
    hot = 0.5 + np.arange(np.prod(kept(axis))).reshape(kept(axis))
    got = FAMILY[name](make(X), axis=axis, temperature=make(hot), where=make(SHOWN))
    lead = [n for i, n in enumerate(X.shape) if i not in positions(axis)]
    wanted = FAMILY[name](brought(X, axis), temperature=hot.reshape(*lead, 1), where=brought(SHOWN, axis))
    for reading, value in leaves(got).items():
        expected = leaves(wanted)[reading]
        same(value, returned(expected, axis) if name in MAPS else expected)


@pytest.mark.parametrize("axis", AXES)
def test_keepdims(axis: Any) -> None:
    got = ss.logsumexp(X, axis=axis, keepdims=True)
    assert got.shape == kept(axis)
    same(got.reshape(-1), np.ravel(ss.logsumexp(X, axis=axis)))


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("axis", AXES)
def test_jacobian_product(axis: Any, make: Callable[[Any], Any]) -> None:
    got = ss.jacobian_product(make(WEIGHTS), make(OTHER), alpha=1.5, axis=axis)
    same(got, returned(ss.jacobian_product(brought(WEIGHTS, axis), brought(OTHER, axis), alpha=1.5), axis))


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("axis", ONE)
def test_jacobian_puts_its_axis_last_twice(axis: int, make: Callable[[Any], Any]) -> None:
    p, n = np.moveaxis(WEIGHTS, axis, -1), WEIGHTS.shape[axis]
    got = ss.jacobian(make(WEIGHTS), axis=axis)
    assert tuple(got.shape) == (*p.shape[:-1], n, n)
    total = p.sum(axis=-1)[..., None, None]  # by definition diag(s) − s·sᵀ/Σs, even if the weights do not sum to 1
    same(got, p[..., None] * np.eye(n) - p[..., :, None] * p[..., None, :] / total)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("axis", ONE)
def test_cross_entropy(axis: int, make: Callable[[Any], Any]) -> None:
    x = np.moveaxis(X, axis, -1)
    targets = np.arange(np.prod(x.shape[:-1])).reshape(x.shape[:-1]) % x.shape[-1]
    got = ss.cross_entropy(make(X), make(targets), axis=axis, reduction="none")
    log_p = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    same(got, -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("axis", AXES)
def test_temperature_for_keeps_the_axis(axis: Any, make: Callable[[Any], Any]) -> None:
    t = ss.temperature_for(make(X), peak=0.6, axis=axis)
    assert tuple(t.shape) == kept(axis)
    weights = brought(np.asarray(ss.softmax(make(X), axis=axis, temperature=t)), axis)
    same(weights.max(axis=-1), np.full(weights.shape[:-1], 0.6), rtol=1e-9)


def test_the_empty_tuple_makes_every_entry_a_row_of_its_own() -> None:
    same(ss.softmax(X, axis=()), np.ones_like(X))
    same(ss.logsumexp(X, axis=()), X)


WRONG = [(3, "3"), (-4, "-4"), ((0, 3), "3"), ((0, 0), "(0, 0)"), ((1, -2), "(1, -2)"), (1.0, "1.0")]
WRONG += [(True, "True"), ("last", "last"), ([0, 1], "[0, 1]"), ((0, 1.5), "1.5"), (np.float64(0), "0.0")]
WITH_AXIS: dict[str, Callable[..., Any]] = {
    **FAMILY,
    "jacobian": ss.jacobian,
    "jacobian_product": lambda x, axis: ss.jacobian_product(x, x, axis=axis),
    "cross_entropy": lambda x, axis: ss.cross_entropy(x, np.zeros((2, 3), dtype=np.int64), axis=axis),
    "temperature_for": lambda x, axis: ss.temperature_for(x, peak=0.5, axis=axis),
}


@pytest.mark.parametrize("name", WITH_AXIS)
def test_a_wrong_axis_is_refused(name: str) -> None:
    for axis, shown in WRONG:
        refused(lambda a=axis: WITH_AXIS[name](X, axis=a), "axis must", shown)


@pytest.mark.parametrize("axis", [None, (0, 1), ()])
@pytest.mark.parametrize("name", ["jacobian", "cross_entropy"])
def test_one_axis_is_wanted(name: str, axis: Any) -> None:
    with pytest.raises(ValueError, match=r"^axis must be one axis"):
        WITH_AXIS[name](X, axis=axis)


def test_an_axis_of_a_tensor_is_checked_as_well() -> None:
    with pytest.raises(ValueError, match=r"^axis must lie in .*3 dimensions, but got 3;"):
        ss.softmax(torch.zeros(1, 2, 3), axis=3)
    with pytest.raises(ValueError, match=r"^axis must"):
        ss.softmax(1.0, axis=1)
