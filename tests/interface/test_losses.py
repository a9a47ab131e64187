"""cross_entropy against PyTorch's, distillation_loss against its formula."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import softscope as ss
from interface.calls import OTHER, X
from interface.kinds import numpy, same, tensor

LOGITS = np.random.default_rng(4).normal(size=(5, 4, 3)) * 2.0
BY_LAST = np.random.default_rng(5).integers(0, 3, size=(5, 4))
BY_SECOND = np.random.default_rng(6).integers(0, 4, size=(5, 3))
each_room = pytest.mark.parametrize("make", [np.array, tensor])
Make = Callable[[Any], Any]
REDUCTIONS = ("mean", "sum", "none")
OPTIONS = list(itertools.product((1.0, 0.4), (0.0, 0.1, 1.0), (-100, 2), REDUCTIONS))


@each_room
@pytest.mark.parametrize(("temperature", "smoothing", "ignored", "reduction"), OPTIONS)
def test_cross_entropy_is_torchs(
    temperature: float, smoothing: float, ignored: int, reduction: str, make: Make
) -> None:
    common = {"label_smoothing": smoothing, "ignore_index": ignored, "reduction": reduction}
    second = BY_SECOND.copy()
    second[0, 0] = ignored
    wanted = functional.cross_entropy(tensor(LOGITS) / temperature, tensor(second), **common)
    got = ss.cross_entropy(make(LOGITS), make(second), axis=1, temperature=temperature, **common)
    same(got, wanted)
    flat, last = LOGITS.reshape(20, 3), BY_LAST.reshape(20)
    wanted = functional.cross_entropy(tensor(flat) / temperature, tensor(last), **common)
    same(ss.cross_entropy(make(flat), make(last), temperature=temperature, **common), wanted)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_its_gradient_is_torchs(reduction: str, smoothing: float) -> None:
    targets = tensor(BY_SECOND)
    targets[1, 2] = -100
    slopes = []
    for loss in (
        lambda x: ss.cross_entropy(x, targets, axis=1, reduction=reduction, label_smoothing=smoothing),
        lambda x: functional.cross_entropy(x, targets, reduction=reduction, label_smoothing=smoothing),
    ):
        x = tensor(LOGITS).requires_grad_(True)
        slopes.append(torch.autograd.grad(loss(x).sum(), x)[0])
    same(slopes[0], slopes[1])
    assert (slopes[0][1, :, 2] == 0.0).all()


@each_room
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("classes", [3, 40, 700])
def test_smoothed_labels_and_a_class_that_is_out(classes: int, dtype: str, make: Make) -> None:
    x = np.zeros((2, classes), dtype)
    x[0, 1] = -np.inf
    losses = ss.cross_entropy(make(x), np.array([0, 0]), label_smoothing=0.1, reduction="none")
    assert np.asarray(losses)[0] == np.inf  # the smoothed label asks for that class, too
    assert np.asarray(losses)[1] == pytest.approx(np.log(classes), rel=1e-6)


@each_room
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_all_ignored_is_zero(smoothing: float, make: Make) -> None:
    x, none = make(LOGITS), make(np.full((5, 4), -100))
    for reduction in REDUCTIONS:
        got = ss.cross_entropy(x, none, reduction=reduction, label_smoothing=smoothing)
        same(got, np.zeros((5, 4) if reduction == "none" else ()))
    leaf = tensor(LOGITS).requires_grad_(True)
    (slope,) = torch.autograd.grad(ss.cross_entropy(leaf, tensor(none), label_smoothing=smoothing), leaf)
    assert (slope == 0.0).all()


@each_room
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_ignored_row_may_hold_anything(bad: float, make: Make) -> None:
    x, targets = LOGITS.copy(), BY_LAST.copy()
    x[2, 1], targets[2, 1] = bad, -100
    clean = ss.cross_entropy(make(LOGITS), make(targets))
    same(ss.cross_entropy(make(x), make(targets)), clean)
    leaf = tensor(x).requires_grad_(True)
    (slope,) = torch.autograd.grad(ss.cross_entropy(leaf, tensor(targets)), leaf)
    finite = np.isfinite(x)
    assert np.isfinite(numpy(slope)[finite]).all()


@each_room
def test_temperatures_of_the_rows(make: Make) -> None:
    hot = np.linspace(0.5, 2.0, 20).reshape(5, 4, 1)
    got = ss.cross_entropy(make(LOGITS), make(BY_LAST), temperature=make(hot), reduction="none")
    same(got, ss.cross_entropy(LOGITS / hot, BY_LAST, reduction="none"))
    hot = np.linspace(0.5, 2.0, 15).reshape(5, 1, 3)
    got = ss.cross_entropy(make(LOGITS), make(BY_SECOND), temperature=make(hot), axis=1)
    same(got, ss.cross_entropy(LOGITS / hot, BY_SECOND, axis=1))


@each_room
def test_indices_of_any_integer_dtype_and_one_row(make: Make) -> None:
    wanted = ss.cross_entropy(LOGITS, BY_LAST)
    for dtype in (np.uint8, np.int8, np.int32, np.int64):
        same(ss.cross_entropy(make(LOGITS), make(BY_LAST.astype(dtype))), wanted)
    same(ss.cross_entropy(make(LOGITS), BY_LAST.tolist()), wanted)
    same(ss.cross_entropy(make(LOGITS[0, 0]), make(np.array(2))), ss.cross_entropy(LOGITS[0, :1], [2]))


@each_room
def test_an_impossible_target_costs_infinitely_much(make: Make) -> None:
    x = make(np.array([[0.0, -np.inf, 1.0], [0.0, 0.0, 0.0]]))
    same(ss.cross_entropy(x, make(np.array([1, 0])), reduction="none"), np.array([np.inf, np.log(3.0)]))
    same(ss.cross_entropy(x, make(np.array([0, 0])), reduction="none")[0], np.log1p(np.e))


@each_room
def test_halves_are_summed_before_they_are_rounded(make: Make) -> None:
    x, targets = make(np.zeros((100_000, 2), dtype=np.float16)), make(np.zeros(100_000, dtype=np.int64))
    same(ss.cross_entropy(x, targets), np.array(np.log(2.0)), rtol=1e-3)
    same(ss.cross_entropy(x, targets, reduction="sum"), np.array(np.inf))  # 69,315 is too large for float16


def kl(student: np.ndarray, teacher: np.ndarray, t: Any) -> np.ndarray:
    """T²·Σ p·(log p − log q), written out."""
    log_p, log_q = (a / t - np.log(np.exp(a / t).sum(axis=-1, keepdims=True)) for a in (teacher, student))
    return np.mean(np.sum(np.square(t) * np.exp(log_p) * (log_p - log_q), axis=-1))


@each_room
@pytest.mark.parametrize("t", [0.5, 1.0, 4.0, np.linspace(0.5, 3.0, 6).reshape(2, 3, 1)], ids=["½", "1", "4", "array"])
def test_distillation_loss_is_its_formula(t: Any, make: Make) -> None:
    hot = make(t) if isinstance(t, np.ndarray) else t
    same(ss.distillation_loss(make(X), make(OTHER), temperature=hot), kl(X, OTHER, t))
    same(ss.distillation_loss(make(X), make(X), temperature=hot), 0.0)
    same(ss.distillation_loss(make(X[0, 0]), make(OTHER[0, 0]), temperature=2.0), kl(X[0, 0], OTHER[0, 0], 2.0))


@each_room
def test_a_teachers_weight_of_zero_adds_nothing(make: Make) -> None:
    student, teacher = np.array([[1.0, 2.0, -np.inf]]), np.array([[2.0, 1.0, -np.inf]])
    got = ss.distillation_loss(make(student), make(teacher), temperature=2.0)
    same(got, kl(student[:, :2], teacher[:, :2], 2.0))
    impossible = make(np.array([[-np.inf, 2.0, 0.0]]))  # the student rules out what the teacher expects
    same(ss.distillation_loss(impossible, make(teacher), temperature=2.0), np.inf)


def test_the_students_gradient_is_t_times_the_difference_of_weights() -> None:
    student, t = tensor(X).requires_grad_(True), 3.0
    (slope,) = torch.autograd.grad(ss.distillation_loss(student, tensor(OTHER), temperature=t), student)
    p, q = (np.exp(a / t) / np.exp(a / t).sum(axis=-1, keepdims=True) for a in (OTHER, X))
    same(slope, t * (q - p) / 6, rtol=1e-9)


def test_the_temperature_of_distillation_has_no_default() -> None:
    with pytest.raises(TypeError, match="temperature"):
        ss.distillation_loss(X, OTHER)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_one_row_is_a_row_of_many(smoothing: float, dtype: str) -> None:
    """Also where float32 is too coarse and the row is taken again: NumPy returns a number then, and no array."""
    rng = np.random.default_rng(0)
    for scale in (0.001, 0.1, 1.0, 10.0):
        x = (scale * rng.normal(size=(20, 5))).astype(dtype)
        targets = rng.integers(0, 5, 20)
        wanted = ss.cross_entropy(x, targets, label_smoothing=smoothing, reduction="none")
        got = [ss.cross_entropy(row, t, label_smoothing=smoothing) for row, t in zip(x, targets, strict=True)]
        np.testing.assert_array_equal(np.array(got), wanted)
