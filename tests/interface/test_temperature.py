"""`temperature` as a number, or as an array with the axis kept: allowed values and their effect."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import FAMILY, MAPS, OTHER, TARGETS, WEIGHTS, X, leaves
from interface.kinds import OnlyDLPack, numpy, same, tensor
from interface.refused import refused

HOT = np.array([[[0.5], [2.0], [1.0]], [[7.0], [0.1], [3.0]]])  # one per row of X
TEMPERED: dict[str, Callable[..., Any]] = {
    **FAMILY,
    "jacobian": lambda x, **t: ss.jacobian(_like(WEIGHTS, x), **t),
    "jacobian_product": lambda x, **t: ss.jacobian_product(_like(WEIGHTS, x), _like(OTHER, x), **t),
    "cross_entropy": lambda x, **t: ss.cross_entropy(x, _like(TARGETS, x), reduction="none", **t),
    "distillation_loss": lambda x, **t: ss.distillation_loss(x, _like(OTHER, x), **t),
}
BY_ROW = [name for name in TEMPERED if name != "distillation_loss"]


def _like(a: np.ndarray, x: Any) -> Any:
    return tensor(a) if isinstance(x, torch.Tensor) else a


TWO = [
    2, np.float32(2), np.float64(2), np.int8(2), np.array(2.0), [[[2.0]]], OnlyDLPack(np.full((2, 3, 1), 2.0)),
    np.full((1, 3, 1), 2, dtype=np.int32), np.full((3, 1), 2, dtype=np.float16), np.full((2, 3, 1), 2.0, dtype=">f8"),
]  # fmt: skip


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", TEMPERED)
def test_every_way_to_say_two(name: str, make: Callable[[Any], Any]) -> None:
    wanted = leaves(TEMPERED[name](make(X), temperature=2.0))
    for two in TWO:
        for reading, value in leaves(TEMPERED[name](make(X), temperature=two)).items():
            same(value, wanted[reading])


@pytest.mark.parametrize("two", [torch.tensor(2), torch.tensor(2.0), torch.full((2, 3, 1), 2.0, dtype=torch.bfloat16)])
@pytest.mark.parametrize("name", TEMPERED)
def test_every_way_to_say_two_in_torch(name: str, two: torch.Tensor) -> None:
    got, wanted = (leaves(TEMPERED[name](tensor(X), temperature=t)) for t in (two, 2.0))
    for reading, value in got.items():
        same(value, wanted[reading])


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", BY_ROW)
def test_an_array_gives_each_row_its_own(name: str, make: Callable[[Any], Any]) -> None:
    got = leaves(TEMPERED[name](make(X), temperature=make(HOT)))
    for t in np.unique(HOT):
        one = leaves(TEMPERED[name](make(X), temperature=float(t)))
        rows = HOT[..., 0] == t
        for reading, value in got.items():
            same(numpy(value)[rows], numpy(one[reading])[rows])


def test_the_wide_temperature_does_not_widen_the_result() -> None:
    for dtype in (np.float16, np.float32):
        assert ss.softmax(X.astype(dtype), temperature=HOT).dtype == dtype
        assert ss.softmax(tensor(X.astype(dtype)), temperature=tensor(HOT)).dtype == tensor(X.astype(dtype)).dtype


def test_the_partition_remembers_its_temperature() -> None:
    same(ss.partition(X, temperature=2.5).temperature, 2.5)
    same(ss.partition(X, temperature=HOT).temperature, HOT[..., 0])
    same(ss.partition(X, temperature=HOT).lse, ss.logsumexp(X, temperature=HOT))
    same(ss.partition(X, temperature=2.0).max_logit, X.max(axis=-1))
    same(ss.partition(X, temperature=2.0).variance, ss.partition(X / 2.0).variance)


@pytest.mark.parametrize("name", TEMPERED)
@pytest.mark.parametrize("kind", ["0-d", "per row"])
def test_a_gradient_reaches_a_temperature(name: str, kind: str) -> None:
    t = torch.tensor(1.5, dtype=torch.float64) if kind == "0-d" else tensor(HOT)
    t.requires_grad_(True)
    value = next(iter(leaves(TEMPERED[name](tensor(X), temperature=t)).values()))
    pull = np.random.default_rng(1).normal(size=tuple(value.shape))
    (slope,) = torch.autograd.grad((value * tensor(pull)).sum(), t)
    h = 1e-6
    up, down = (next(iter(leaves(TEMPERED[name](X, temperature=numpy(t) + s)).values())) for s in (h, -h))
    same(slope.sum(), ((up - down) / (2 * h) * pull).sum(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("hot", [np.inf, np.full((2, 1), np.inf)])
def test_an_infinite_temperature_is_uniform_over_the_visible(hot: Any, make: Callable[[Any], Any]) -> None:
    x = make(np.array([[1.0, -50.0, -np.inf, 3.0], [4.0, 4.0, 0.0, 1e300]]))
    shown = np.array([[True] * 4, [True, False, True, True]])
    hot = hot if isinstance(hot, float) else make(hot)
    third = np.array([[1, 1, 0, 1], [1, 0, 1, 1]]) / 3
    for name, function in MAPS.items():
        got = function(x, temperature=hot, where=shown)
        with np.errstate(divide="ignore"):
            same(got, np.log(third) if name == "log_softmax" else third)
    same(ss.logsumexp(x, temperature=hot, where=shown), np.full(2, np.log(3.0)))
    p = ss.partition(x, temperature=hot, where=shown)
    same(p.entropy, np.full(2, np.log(3.0)))
    same(p.sharpness, np.zeros(2), atol=1e-12)
    same(p.peak, np.full(2, 1 / 3))


@pytest.mark.parametrize("make", [np.array, tensor])
def test_a_tiny_temperature_is_one_hot_and_never_nan(make: Callable[[Any], Any]) -> None:
    x = make(np.array([[1.0, 3.0, 2.0], [1e300, -1e300, 0.0]]))
    for name, function in MAPS.items():
        got = numpy(function(x, temperature=1e-300))
        one_hot = np.exp(got) if name == "log_softmax" else got
        same(one_hot, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    same(ss.partition(x, temperature=1e-300).entropy, np.zeros(2))


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", BY_ROW)
def test_nan_in_an_array_is_nan_in_that_row_only(name: str, make: Callable[[Any], Any]) -> None:
    hot = HOT.copy()
    hot[0, 1, 0] = np.nan
    got, clean = (leaves(TEMPERED[name](make(X), temperature=make(t))) for t in (hot, HOT))
    others = np.ones((2, 3), dtype=bool)
    others[0, 1] = False
    for reading, value in got.items():
        same(numpy(value)[others], numpy(clean[reading])[others])
        if reading not in {"count", "max_logit"}:  # these two do not depend on the temperature
            assert np.isnan(numpy(value)[0, 1]).all(), f"{name}: {reading}"


BAD_NUMBERS = [(0, "0"), (0.0, "0.0"), (-1.5, "-1.5"), (np.nan, "nan"), (-np.inf, "-inf"), (np.float32(-2), "-2.0")]
BAD_NUMBERS += [(True, "bool"), ("hot", ""), (None, ""), (1j, "complex")]


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", TEMPERED)
def test_a_wrong_number_is_refused(name: str, make: Callable[[Any], Any]) -> None:
    for value, shown in BAD_NUMBERS:
        refused(lambda v=value: TEMPERED[name](make(X), temperature=v), "temperature", shown)


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", TEMPERED)
def test_a_wrong_number_inside_an_array_is_refused(name: str, make: Callable[[Any], Any]) -> None:
    for wrong in (0.0, -0.5, -np.inf):
        hot = HOT.copy()
        hot[1, 2, 0] = wrong
        refused(lambda t=hot: TEMPERED[name](make(X), temperature=make(t)), "temperature", str(wrong))


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize("name", TEMPERED)
def test_a_learned_temperature_that_went_wrong_is_refused(name: str) -> None:
    learned = torch.nn.Parameter(torch.tensor(-0.25))
    refused(lambda: TEMPERED[name](tensor(X), temperature=learned), "temperature", "-0.25")


@pytest.mark.parametrize("make", [np.array, tensor])
@pytest.mark.parametrize("name", TEMPERED)
def test_a_shape_that_does_not_fit_is_shown_with_the_one_that_would(name: str, make: Callable[[Any], Any]) -> None:
    for shape in ((2, 3), (2, 3, 4), (3,), (1, 2, 3, 1), (2, 1, 2)):
        hot = make(np.ones(shape))
        refused(lambda t=hot: TEMPERED[name](make(X), temperature=t), "temperature", str(shape), "(2, 3, 1)")
