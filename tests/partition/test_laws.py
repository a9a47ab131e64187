"""The partition's laws: it merges like a sum of parts, and reads the same however the row was split."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import softscope as ss

READINGS = (
    "lse", "entropy", "collision", "peak", "max_logit", "variance", "count",
    "jacobian_trace", "effective_support", "sharpness",
)  # fmt: skip

finite = st.floats(-700.0, 700.0, allow_nan=False)
with_holes = st.one_of(finite, st.just(-np.inf))
tied = st.sampled_from([-np.inf, -30.0, -1.0, 0.0, 0.0, 2.5, 2.5])
temperatures = st.sampled_from([0.05, 0.5, 1.0, 3.0, 40.0])


def rows(min_size: int = 0, elements: st.SearchStrategy[float] = with_holes) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, st.integers(min_size, 12), elements=elements)


any_rows = st.one_of(rows(), rows(elements=tied))


def assert_same(a: ss.Partition, b: ss.Partition, rtol: float = 1e-12) -> None:
    for name in READINGS:
        got, wanted = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        slack = rtol
        if name == "variance":
            # The bound of softscope.bounds.variance, with slack for summing in another order.
            mean = np.asarray(b.state.u) / np.maximum(np.asarray(b.state.c) + np.asarray(b.state.r), 1.0)
            slack = rtol * (1.0 + np.where(wanted > 0.0, mean * mean / np.where(wanted > 0.0, wanted, 1.0), 0.0))
        with np.errstate(invalid="ignore"):
            near = np.abs(got - wanted) <= slack * np.abs(wanted) + (1e-13 if name in ("sharpness", "lse") else 1e-300)
        assert np.all(near | (got == wanted) | (np.isnan(got) & np.isnan(wanted))), (name, got, wanted)


@given(any_rows, any_rows, temperatures)
def test_parts_equal_the_whole(left: np.ndarray, right: np.ndarray, t: float) -> None:
    whole = ss.partition(np.concatenate([left, right]), temperature=t)
    assert_same(ss.partition(left, temperature=t).merge(ss.partition(right, temperature=t)), whole)


@given(any_rows, any_rows, any_rows, temperatures)
def test_associative(a: np.ndarray, b: np.ndarray, c: np.ndarray, t: float) -> None:
    p, q, r = (ss.partition(x, temperature=t) for x in (a, b, c))
    assert_same(p.merge(q).merge(r), p.merge(q.merge(r)))


@given(any_rows, any_rows, temperatures)
def test_commutative_to_the_bit(a: np.ndarray, b: np.ndarray, t: float) -> None:
    p, q = ss.partition(a, temperature=t), ss.partition(b, temperature=t)
    for name in READINGS:
        np.testing.assert_array_equal(getattr(p.merge(q), name), getattr(q.merge(p), name), err_msg=name)


@given(any_rows, temperatures)
def test_empty_is_the_identity_to_the_bit(x: np.ndarray, t: float) -> None:
    p = ss.partition(x, temperature=t)
    for merged in (p.merge(ss.Partition.empty()), ss.Partition.empty().merge(p)):
        assert merged.temperature == t
        for name in READINGS:
            np.testing.assert_array_equal(getattr(merged, name), getattr(p, name), err_msg=name)


@given(any_rows, st.integers(1, 5))
def test_minus_inf_parts_change_nothing(x: np.ndarray, n: int) -> None:
    p = ss.partition(x)
    merged = p.merge(ss.partition(np.full(n, -np.inf)))
    for name in READINGS:
        np.testing.assert_array_equal(getattr(merged, name), getattr(p, name), err_msg=name)


@given(rows(1, tied), rows(1, tied))
def test_ties_at_the_maximum_are_counted(a: np.ndarray, b: np.ndarray) -> None:
    both = np.concatenate([a, b])
    assume(np.isfinite(both.max()))
    merged = ss.partition(a).merge(ss.partition(b))
    assert merged.state.c == np.sum(both == both.max())


@given(rows(1, st.integers(-500, 500).map(float)), st.integers(-(2**40), 2**40))
def test_shift_moves_lse_and_maximum_only(x: np.ndarray, shift: int) -> None:
    here, there = ss.partition(x), ss.partition(x + shift)
    for name in READINGS:
        if name not in ("lse", "max_logit"):
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)
    assert there.max_logit == here.max_logit + shift
    assert abs(there.lse - (here.lse + shift)) <= 4e-16 * max(abs(there.lse), abs(here.lse), abs(shift))


@given(rows(1, finite), st.sampled_from([0.25, 0.5, 2.0, 8.0]))
def test_scale_is_temperature(x: np.ndarray, factor: float) -> None:
    """softmax(k·x) is softmax(x) at 1/k; powers of two scale without rounding, so the bits agree."""
    assume(np.all(x * factor / factor == x))  # denormal numbers do round
    scaled, tempered = ss.partition(x * factor), ss.partition(x, temperature=1.0 / factor)
    for name in READINGS:
        if name != "max_logit":
            np.testing.assert_array_equal(getattr(scaled, name), getattr(tempered, name), err_msg=name)
    assert scaled.max_logit == factor * tempered.max_logit


@given(rows(1, finite), temperatures)
def test_readings_agree_with_the_weights(x: np.ndarray, t: float) -> None:
    p = ss.softmax(x, temperature=t)
    r = ss.partition(x, temperature=t)
    np.testing.assert_allclose(r.peak, p.max(), rtol=1e-13)
    np.testing.assert_allclose(r.collision, np.sum(p * p), rtol=1e-12)
    np.testing.assert_allclose(r.entropy, -np.sum(p[p > 0] * np.log(p[p > 0])), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(r.jacobian_trace, np.sum(p * (1.0 - p)), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(r.lse, ss.logsumexp(x, temperature=t), rtol=1e-14, atol=1e-300)
    assert 0.0 <= r.entropy <= np.log(x.size) * (1 + 1e-14) + 1e-14
    assert r.count == x.size


@settings(max_examples=30)
@given(hnp.arrays(np.float64, (2, 3, 5), elements=finite), st.sampled_from([0, 1, 2, (0, 2), None]))
def test_many_rows_are_many_single_rows(x: np.ndarray, axis: int | tuple[int, ...] | None) -> None:
    axes = tuple(range(3)) if axis is None else (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    lead = moved.shape[: moved.ndim - len(axes)]
    p = ss.partition(x, axis=axis)
    for index in np.ndindex(lead):
        single = ss.partition(moved[index].reshape(-1))
        for name in READINGS:
            assert np.asarray(getattr(p, name))[index] == getattr(single, name), name


def test_other_temperatures_do_not_merge() -> None:
    with pytest.raises(ValueError, match=r"one temperature.*1\.0.*2\.0"):
        ss.partition([1.0]).merge(ss.partition([1.0], temperature=2.0))
    warm = ss.partition(np.zeros((2, 3)), temperature=np.array([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="one temperature"):
        warm.merge(ss.partition(np.zeros((2, 3)), temperature=np.array([[1.0], [3.0]])))
    assert warm.merge(warm).count.tolist() == [6, 6]


def test_other_shapes_and_kinds_do_not_merge() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        ss.partition(np.zeros((2, 3))).merge(ss.partition(np.zeros((3, 3))))
    with pytest.raises(TypeError, match="but got int;"):
        ss.partition([1.0]).merge(3)  # type: ignore[arg-type]


def test_reading_of_nothing_one_and_uniform() -> None:
    nothing = ss.partition(np.zeros(0))
    assert nothing.count == 0
    assert nothing.lse == nothing.max_logit == -np.inf
    assert all(np.isnan(getattr(nothing, name)) for name in READINGS if name not in ("count", "lse", "max_logit"))
    one = ss.partition([5.0])
    assert (one.sharpness, one.entropy, one.peak, one.jacobian_trace, one.variance) == (0.0, 0.0, 1.0, 0.0, 0.0)
    uniform = ss.partition(np.full(8, 3.0))
    assert uniform.sharpness == pytest.approx(0.0, abs=1e-15)
    assert uniform.effective_support == pytest.approx(8.0, rel=1e-15)


def test_near_one_hot_nothing_cancels() -> None:
    """1e-300 of the weight is elsewhere, and entropy and trace still show it."""
    p = ss.partition([0.0, np.log(1e-300)])
    assert p.jacobian_trace == pytest.approx(2e-300, rel=1e-12)
    assert p.entropy == pytest.approx(1e-300 * (1.0 + np.log(1e300)), rel=1e-12)


def test_nan_and_inf_stay_in_their_row_when_merged() -> None:
    a = ss.partition(np.array([[1.0, np.nan], [1.0, np.inf], [1.0, 2.0]]))
    merged = a.merge(ss.partition(np.array([[3.0], [3.0], [3.0]])))
    assert np.isnan(merged.lse[0])
    assert merged.lse[1] == np.inf
    assert np.isnan(merged.entropy[:2]).all()
    assert merged.entropy[2] == pytest.approx(ss.partition([1.0, 2.0, 3.0]).entropy, rel=1e-14)


def test_survives_copying_and_pickling() -> None:
    p = ss.partition([[1.0, 2.0], [3.0, 3.0]])
    for twin in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        np.testing.assert_array_equal(twin.entropy, p.entropy)
    assert repr(p) == "Partition(shape=(2,), temperature=1.0)"
