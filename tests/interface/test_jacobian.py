"""jacobian and jacobian_product against autograd and against each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.calls import OTHER, X
from interface.kinds import same, tensor

ALPHAS = [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 6.0]
T = 1.7
each_room = pytest.mark.parametrize("make", [np.array, tensor])
each_alpha = pytest.mark.parametrize("alpha", ALPHAS)
Make = Callable[[Any], Any]


@each_room
@each_alpha
def test_the_dense_jacobian_is_autograds(alpha: float, make: Make) -> None:
    row = tensor(X[0, 0])
    wanted = torch.autograd.functional.jacobian(lambda x: ss.entmax(x, alpha, temperature=T), row)
    got = ss.jacobian(make(ss.entmax(X[0, 0], alpha, temperature=T)), alpha=alpha, temperature=T)
    same(got, wanted, rtol=1e-9, atol=1e-12)


def test_the_jacobian_of_softmax_is_that_of_torch() -> None:
    wanted = torch.autograd.functional.jacobian(lambda x: torch.softmax(x / T, dim=0), tensor(X[:, 0, 0]))
    same(ss.jacobian(ss.softmax(X, axis=0, temperature=T), axis=0, temperature=T)[0, 0], wanted)


@each_room
@each_alpha
def test_the_product_is_the_matrix_times_the_vector(alpha: float, make: Make) -> None:
    p = make(ss.entmax(X, alpha, temperature=T))
    dense = ss.jacobian(p, alpha=alpha, temperature=T)
    got = ss.jacobian_product(p, make(OTHER), alpha=alpha, temperature=T)
    same(got, (dense @ make(OTHER)[..., None])[..., 0])


@each_room
def test_alpha_and_temperature_may_differ_by_row(make: Make) -> None:
    alpha = np.array([[[1.0], [1.25], [1.5]], [[1.75], [2.5], [1.1]]])
    hot = np.array([[[1.0], [0.5], [2.0]], [[3.0], [1.5], [0.7]]])
    p = ss.entmax(X, alpha, temperature=hot)
    product = ss.jacobian_product(make(p), make(OTHER), alpha=make(alpha), temperature=make(hot))
    dense = ss.jacobian(make(p), alpha=make(alpha), temperature=make(hot))
    for i in np.ndindex(2, 3):
        options = {"alpha": float(alpha[i][0]), "temperature": float(hot[i][0])}
        same(product[i], ss.jacobian_product(p[i], OTHER[i], **options))
        same(dense[i], ss.jacobian(p[i], **options))


@each_room
@each_alpha
def test_it_is_symmetric_and_takes_constants_to_zero(alpha: float, make: Make) -> None:
    p = make(ss.entmax(X, alpha))
    dense = ss.jacobian(p, alpha=alpha)
    same(dense, np.swapaxes(np.asarray(dense), -1, -2), rtol=1e-15)
    same(np.asarray(dense).sum(axis=-1), np.zeros(X.shape), atol=1e-15)
    same(ss.jacobian_product(p, make(np.full(X.shape, 1e6)), alpha=alpha), np.zeros(X.shape))


@each_room
@each_alpha
def test_one_hot_and_empty_weights_pass_nothing(alpha: float, make: Make) -> None:
    p = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])  # saturated, and a row that sees nothing
    v = make(np.array([[3.0, -2.0, 5.0]] * 2))
    same(ss.jacobian(make(p), alpha=alpha), np.zeros((2, 3, 3)))
    same(ss.jacobian_product(make(p), v, alpha=alpha), np.zeros((2, 3)))


def test_an_infinite_temperature_stops_every_gradient() -> None:
    p = ss.softmax(X, temperature=np.inf)
    same(ss.jacobian(p, temperature=np.inf), np.zeros((2, 3, 4, 4)))
    same(ss.jacobian_product(p, OTHER, temperature=np.inf), np.zeros(X.shape))


@each_alpha
def test_the_product_is_the_backward_pass(alpha: float) -> None:
    x = tensor(X).requires_grad_(True)
    p = ss.entmax(x, alpha, temperature=T)
    (wanted,) = torch.autograd.grad(p, x, tensor(OTHER))
    same(ss.jacobian_product(p.detach(), tensor(OTHER), alpha=alpha, temperature=T), wanted, rtol=1e-9)
