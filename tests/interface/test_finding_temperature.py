"""temperature_for: round trips, and NaN if no temperature fits; fit_temperature: the minimum of its loss."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize

import softscope as ss
from interface.calls import X
from interface.kinds import numpy, same, tensor

each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]


@each_room
@pytest.mark.parametrize(
    ("reading", "value"), [("entropy", 0.05), ("entropy", 0.9), ("entropy", 1.38), ("peak", 0.26), ("peak", 0.999)]
)
def test_there_and_back(reading: str, value: float, make: Make) -> None:
    t = ss.temperature_for(make(X), **{reading: value})
    assert tuple(t.shape) == (2, 3, 1)
    same(getattr(ss.partition(make(X), temperature=t), reading), np.full((2, 3), value), rtol=1e-9)
    weights = numpy(ss.softmax(make(X), temperature=t))
    back = weights.max(axis=-1) if reading == "peak" else -(weights * np.log(weights)).sum(axis=-1)
    same(back, np.full((2, 3), value), rtol=1e-7)


@pytest.mark.parametrize("share", [1e-12, 1e-6, 0.5, 1.0 - 1e-6, 1.0 - 1e-12])
@pytest.mark.parametrize("name", ["entropy", "peak"])
def test_targets_next_to_the_limits_and_logits_far_apart(name: str, share: float) -> None:
    """Here the reading is flat for most temperatures, and a step that trusts its slope leaves for infinity."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 30, 3000):
        for x in (rng.standard_normal(n), rng.standard_normal(n) * 1e3, np.exp(rng.uniform(-300.0, 300.0, n))):
            target = share * np.log(n)
            value = target if name == "entropy" else np.exp(-target)
            t = ss.temperature_for(x, **{name: value})
            back = getattr(ss.partition(x, temperature=t), name)
            assert np.isfinite(t).all()
            np.testing.assert_allclose(back, value, rtol=1e-12, atol=1e-14)


def test_a_range_beyond_that_of_floats() -> None:
    """1.5e308 − (−1.5e308) overflows, but the temperature exists: peak 0.95 at a gap of log 19."""
    t = ss.temperature_for([1.5e308, -1.5e308], peak=0.95)
    np.testing.assert_allclose(t / 2.0, 1.5e308 / np.log(19.0), rtol=1e-12)


@each_room
def test_each_row_may_have_its_own_target(make: Make) -> None:
    wanted = np.array([[[0.3], [0.5], [0.9]], [[0.4], [0.6], [0.99]]])
    t = ss.temperature_for(make(X), peak=make(wanted))
    same(ss.partition(make(X), temperature=t).peak, wanted[..., 0], rtol=1e-9)
    same(ss.temperature_for(make(X), peak=wanted[:1]), ss.temperature_for(X, peak=wanted[:1]))
    same(ss.temperature_for(make(X), peak=wanted.tolist()), t)


@each_room
def test_nan_where_no_temperature_does_it(make: Make) -> None:
    x = np.array([[1.0, 2.0, 3.0], [3.0, 3.0, 0.0], [1.0, 1.0, 1.0], [np.nan, 0.0, 1.0], [0.0, 1.0, -np.inf]])
    for options, reached in (
        ({"entropy": 1.0}, [1, 1, 0, 0, 0]),  # −inf leaves two entries, whose entropy is at most log 2
        ({"entropy": 0.5}, [1, 0, 0, 0, 1]),  # with two tied at the maximum, entropy starts at log 2
        ({"entropy": 1.2}, [0, 0, 0, 0, 0]),  # above log 3
        ({"peak": 0.4}, [1, 1, 0, 0, 0]),
        ({"peak": 0.6}, [1, 0, 0, 0, 1]),
        ({"peak": 0.2}, [0, 0, 0, 0, 0]),
        ({"peak": 1.0}, [0, 0, 0, 0, 0]),
        ({"entropy": 0.0}, [0, 0, 0, 0, 0]),
    ):
        t = numpy(ss.temperature_for(make(x), **options))
        assert np.isfinite(t[:, 0]).tolist() == [bool(r) for r in reached], options
        assert np.isnan(t[:, 0]).tolist() == [not r for r in reached], options
        weights = numpy(ss.softmax(make(x), temperature=ss.temperature_for(make(x), **options)))
        assert np.isnan(weights).any(axis=-1).tolist() == [not r for r in reached], options
    assert np.isnan(numpy(ss.temperature_for(make([5.0]), entropy=0.1))).all()


@each_room
def test_an_array_of_targets_gives_nan_where_it_must(make: Make) -> None:
    t = ss.temperature_for(make([[1.0, 2.0]] * 4), entropy=make([[0.5], [0.7], [np.nan], [-1.0]]))
    assert np.isfinite(numpy(t)[:, 0]).tolist() == [True, False, False, False]


@each_room
def test_only_the_visible_count(make: Make) -> None:
    shown = np.array([True, False, True, True])
    t = ss.temperature_for(make(X), entropy=0.6, where=make(shown))
    same(t, ss.temperature_for(X[..., shown], entropy=0.6), rtol=1e-9)


@each_room
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_it_scales_with_the_logits(scale: float, make: Make) -> None:
    same(ss.temperature_for(make(X * scale), peak=0.7), scale * ss.temperature_for(X, peak=0.7), rtol=1e-9)
    same(ss.temperature_for(make(X + 1e3), peak=0.7), ss.temperature_for(X, peak=0.7), rtol=1e-9)


def test_a_tensor_that_needs_a_gradient_gives_a_plain_one() -> None:
    t = ss.temperature_for(tensor(X).requires_grad_(True), entropy=0.5)
    assert isinstance(t, torch.Tensor)
    assert not t.requires_grad


LOGITS = np.random.default_rng(8).normal(size=(400, 5)) * 3.0
TRUE = np.exp(LOGITS / 2.5) / np.exp(LOGITS / 2.5).sum(axis=-1, keepdims=True)  # the logits are overconfident
LABELS = np.array([np.random.default_rng(i).choice(5, p=p) for i, p in enumerate(TRUE)])


def nll(t: float) -> float:
    x = LOGITS / t
    return float(np.mean(np.log(np.exp(x).sum(axis=-1)) - x[np.arange(400), LABELS]))


def ece(t: float) -> float:
    p = np.exp(LOGITS / t) / np.exp(LOGITS / t).sum(axis=-1, keepdims=True)
    sure, right, total = p.max(axis=-1), p.argmax(axis=-1) == LABELS, 0.0
    for low in np.arange(15) / 15:
        inside = (sure > low) & (sure <= low + 1 / 15)
        total += abs((right[inside] * 1.0 - sure[inside]).sum()) / 400
    return total


@each_room
def test_the_fit_is_the_minimum(make: Make) -> None:
    fit = ss.fit_temperature(make(LOGITS), make(LABELS))
    best = optimize.minimize_scalar(nll, bracket=(0.5, 5.0), options={"xtol": 1e-10})
    assert fit.temperature == pytest.approx(best.x, rel=1e-6)
    assert 2.0 < fit.temperature < 3.0
    assert fit.nll_before == pytest.approx(nll(1.0), rel=1e-12)
    assert fit.nll_after == pytest.approx(best.fun, rel=1e-12)
    assert fit.ece_before == pytest.approx(ece(1.0), rel=1e-9)
    assert fit.ece_after == pytest.approx(ece(fit.temperature), rel=1e-9)
    assert fit.nll_after < fit.nll_before
    assert fit.ece_after < fit.ece_before
    assert fit._fields == ("temperature", "nll_before", "nll_after", "ece_before", "ece_after")
    assert all(type(value) is float for value in fit)


@each_room
def test_any_shape_and_scale(make: Make) -> None:
    fit = ss.fit_temperature(make(LOGITS), make(LABELS))
    folded = ss.fit_temperature(make(LOGITS.reshape(20, 20, 5)), make(LABELS.reshape(20, 20)))
    assert folded == pytest.approx(fit, rel=1e-9)
    scaled = ss.fit_temperature(make(LOGITS * 1e3), make(LABELS.astype(np.uint8)))
    assert scaled.temperature == pytest.approx(1e3 * fit.temperature, rel=1e-9)
    assert scaled.nll_after == pytest.approx(fit.nll_after, rel=1e-9)


def test_no_finite_temperature_is_said() -> None:
    sure = np.array([[2.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"temperature.*T goes to 0.*;"):
        ss.fit_temperature(sure, [0, 1])
    with pytest.raises(ValueError, match=r"temperature.*infinity.*;"):
        ss.fit_temperature(sure, [1, 0])
