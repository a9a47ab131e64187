"""First and second derivatives of every differentiable function, checked by PyTorch's finite differences."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import softscope as ss

_random = torch.Generator().manual_seed(31)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_random, dtype=torch.float64)


X, OTHER = normal(2, 4), normal(2, 4)
P = torch.softmax(X, dim=-1)
TIED = torch.tensor([[1.0, 3.0, 3.0, 2.5], [2.0, 2.0, 2.0, 2.0]], dtype=torch.float64)
HOT = torch.tensor([[0.8], [1.7]], dtype=torch.float64)
ALPHA = torch.tensor([[1.3], [1.8]], dtype=torch.float64)
SHOWN = torch.tensor([[True, True, False, True], [False, True, True, True]])
HOLED = X.masked_fill(~SHOWN, -torch.inf)
TARGETS = torch.tensor([2, 1])
Q, K, V = normal(2, 3, 2), normal(1, 4, 2), normal(1, 4, 2)
MASK, SINK, SCALE = normal(3, 4), normal(2), torch.tensor([0.5, 1.5], dtype=torch.float64)
W_Q, W_K, V_A = normal(2, 3), normal(2, 3), normal(3)
SMOOTH = ("lse", "entropy", "collision", "variance", "jacobian_trace", "effective_support", "sharpness")


def finite(y: torch.Tensor) -> torch.Tensor:
    """Keep what finite differences can handle: −inf − −inf is NaN."""
    return y.masked_fill(~torch.isfinite(y), 0.0)


Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
CASES: dict[str, Case] = {
    "softmax": (ss.softmax, (X,)),
    "softmax, temperature": (lambda x, t: ss.softmax(x, temperature=t), (X, HOT)),
    "softmax, temperature, axis": (lambda x, t: ss.softmax(x, axis=0, temperature=t), (X, normal(1, 4).exp())),
    "softmax, ties": (lambda x, t: ss.softmax(x, temperature=t), (TIED, HOT)),
    "softmax, where": (lambda x, t: ss.softmax(x, temperature=t, where=SHOWN), (X, HOT)),
    "log_softmax, temperature": (lambda x, t: ss.log_softmax(x, temperature=t), (X, HOT)),
    "log_softmax, ties": (lambda x, t: ss.log_softmax(x, temperature=t), (TIED, HOT)),
    "log_softmax, where": (lambda x, t: finite(ss.log_softmax(x, temperature=t, where=SHOWN)), (X, HOT)),
    "logsumexp, temperature": (lambda x, t: ss.logsumexp(x, temperature=t), (X, HOT)),
    "logsumexp, ties": (lambda x, t: ss.logsumexp(x, temperature=t), (TIED, HOT)),
    "logsumexp, where": (lambda x, t: ss.logsumexp(x, temperature=t, where=SHOWN), (X, HOT)),
    "sparsemax, temperature": (lambda x, t: ss.sparsemax(x, temperature=t), (X, HOT)),
    "sparsemax, ties": (lambda x, t: ss.sparsemax(x, temperature=t), (TIED, HOT)),
    "sparsemax, where": (lambda x, t: ss.sparsemax(x, temperature=t, where=SHOWN), (X, HOT)),
    "entmax, all": (lambda x, a, t: ss.entmax(x, a, temperature=t), (X, ALPHA, HOT)),
    "entmax, one alpha": (lambda x, a: ss.entmax(x, a), (X, ALPHA[0, 0].clone())),
    "entmax, ties": (lambda x, a, t: ss.entmax(x, a, temperature=t), (TIED, ALPHA, HOT)),
    "entmax, where": (lambda x, a, t: ss.entmax(x, a, temperature=t, where=SHOWN), (X, ALPHA, HOT)),
    "entmax, alpha beyond 2": (lambda x, a, t: ss.entmax(x / 4, a + 1.5, temperature=t), (X, ALPHA, HOT)),
    "entmax, alpha beyond 2, ties": (lambda x, a, t: ss.entmax(x / 4, a + 1.5, temperature=t), (TIED, ALPHA, HOT)),
    "entmax, number beyond 2": (lambda x: ss.entmax(x / 4, 3.5), (X,)),
    "entmax, axis": (lambda x, a: ss.entmax(x, a, axis=0), (X, ALPHA[:1])),
    "entmax, number": (lambda x: ss.entmax(x, 1.25), (X,)),
    "jacobian": (lambda p, t: ss.jacobian(p, temperature=t), (P, HOT)),
    "jacobian, alpha": (lambda p, a: ss.jacobian(p, alpha=a), (P, ALPHA)),
    "jacobian_product": (lambda p, v, t: ss.jacobian_product(p, v, temperature=t), (P, OTHER, HOT)),
    "jacobian, alpha beyond 2": (lambda p, a: ss.jacobian(p, alpha=a + 2.0), (P, ALPHA)),
    "jacobian_product, alpha beyond 2": (lambda p, v, a: ss.jacobian_product(p, v, alpha=a + 2.0), (P, OTHER, ALPHA)),
    "jacobian_product, alpha": (lambda p, v, a: ss.jacobian_product(p, v, alpha=a), (P, OTHER, ALPHA)),
    "cross_entropy": (
        lambda x, t: ss.cross_entropy(x, TARGETS, temperature=t, label_smoothing=0.1), (X, HOT)),
    "cross_entropy, ties": (lambda x: ss.cross_entropy(x, TARGETS, reduction="none"), (TIED,)),
    "distillation_loss": (lambda s, t, h: ss.distillation_loss(s, t, temperature=h), (X, OTHER, HOT)),
    "attention": (lambda q, k, v: ss.attention(q, k, v, causal=True, query_start=1), (Q, K, V)),
    "attention, all": (
        lambda q, k, v, scale, mask, sink: ss.attention(q, k, v, scale=scale, mask=mask, sink=sink, softcap=1.5),
        (Q, K, V, SCALE, MASK, SINK)),
    "attention, hidden row": (
        lambda q, k, v: ss.attention(q, k, v, mask=torch.arange(3)[:, None] + 0 * torch.arange(4) > 0), (Q, K, V)),
    "attention, entmax": (lambda q, k, v: ss.attention(q, k, v, alpha=1.5), (Q, K, V)),
    "attention, alpha 3": (lambda q, k, v: ss.attention(q, k, v, alpha=3.0, scale=0.2), (Q, K, V)),
    "attention, sparsemax": (lambda q, k, v: ss.attention(q, k, v, alpha=2.0), (Q, K, V)),
    "additive_attention": (ss.additive_attention, (Q, K, V, W_Q, W_K, V_A)),
}  # fmt: skip


def _reading(name: str, **options: Any) -> Callable[..., torch.Tensor]:
    return lambda x, t: getattr(ss.partition(x, temperature=t, **options), name)


def _merged(name: str) -> Callable[..., torch.Tensor]:
    return lambda x, t: getattr(
        ss.partition(x[:, :1], temperature=t).merge(ss.partition(x[:, 1:], temperature=t)), name
    )


for _name in SMOOTH:
    CASES[f"partition, {_name}"] = (_reading(_name), (X, HOT))
    CASES[f"partition, {_name}, ties"] = (_reading(_name), (TIED, HOT))
    CASES[f"partition, {_name}, where"] = (_reading(_name, where=SHOWN), (X, HOT))
    CASES[f"partition, {_name}, merged"] = (_merged(_name), (X, HOT))
CASES["partition, peak"] = (_reading("peak"), (X, HOT))  # a maximum has no derivative at ties
CASES["partition, peak, where"] = (_reading("peak", where=SHOWN), (X, HOT))
CASES["partition, peak, merged"] = (_merged("peak"), (X, HOT))


# The readings share one state, so the second derivatives of some of them speak for all.
FIRST_ONLY = {f"partition, {name}, {case}" for name in SMOOTH[2:] for case in ("where", "merged")} & CASES.keys()


def leaves(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(x.detach().clone().requires_grad_(True) for x in inputs)


def test_every_differentiable_function_is_here() -> None:
    functions = {name for name in ss.__all__ if not isinstance(getattr(ss, name), type)}
    others = {"temperature_for", "fit_temperature", "sample", "attention_partition", "gradient_readings"}
    others |= {"get_num_threads", "set_num_threads", "probe"}
    assert functions - others == {name.partition(",")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name: str) -> None:
    function, inputs = CASES[name]
    assert gradcheck(function, leaves(inputs), eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if name not in FIRST_ONLY])
def test_second_derivatives(name: str) -> None:
    function, inputs = CASES[name]
    assert gradgradcheck(function, leaves(inputs), eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("merged", [False, True])
def test_the_largest_logit_moves_with_the_largest_entry(merged: bool) -> None:
    x, t = leaves((X, HOT))
    largest = (_merged if merged else _reading)("max_logit")(x, t)
    slope, heat = torch.autograd.grad(largest.sum(), (x, t), allow_unused=True)
    assert (slope == torch.nn.functional.one_hot(X.argmax(dim=-1), 4)).all()
    assert heat is None or (heat == 0.0).all()


def test_an_entry_of_minus_infinity_is_outside_every_derivative() -> None:
    x, t = HOLED.clone().requires_grad_(True), HOT.clone().requires_grad_(True)
    y, where = (f.clone().requires_grad_(True) for f in (X, HOT))
    for function in (ss.softmax, ss.sparsemax, ss.entmax):
        got = torch.autograd.grad(function(x, temperature=t), (x, t), OTHER)
        wanted = torch.autograd.grad(function(y, temperature=where, where=SHOWN), (y, where), OTHER)
        for a, b in zip(got, wanted, strict=True):
            assert torch.allclose(a, b, rtol=1e-12, atol=1e-14)


def test_the_gradient_in_alpha_meets_softmax_at_one() -> None:
    # There is nothing below 1 for a central difference; (4·f(1+h) − f(1+2h) − 3·f(1))/2h is as good.
    alpha = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    got = torch.autograd.grad(ss.entmax(X, alpha), alpha, OTHER)[0]
    h = 1e-4
    steps = [ss.entmax(X, 1.0 + i * h) for i in (0, 1, 2)]
    measured = ((4.0 * steps[1] - steps[2] - 3.0 * steps[0]) / (2.0 * h) * OTHER).sum(dim=-1, keepdim=True)
    assert torch.allclose(got, measured, rtol=1e-4, atol=1e-6)
    assert (got != 0.0).all()


def test_alpha_of_attention_and_the_partition_of_attention_are_constants() -> None:
    q, k, v = leaves((Q, K, V))
    _, p = ss.attention(q, k, v, return_partition=True)
    assert not p.entropy.requires_grad
    assert not ss.attention_partition(q, k).lse.requires_grad
