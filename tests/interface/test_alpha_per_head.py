"""One alpha per head: which forms it may have, what is refused, and who sees it besides the kernels."""

from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from interface.refused import refused

Q, K, V = (torch.randn(2, 4, n, 8, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (5, 7, 9))
K, V = K[:, :2], torch.randn(2, 2, 7, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
ALPHAS = [1.0, 1.5, 2.0, 3.0]


@pytest.mark.parametrize("make", [list, np.array, torch.tensor, lambda a: torch.tensor(a, dtype=torch.bfloat16)])
def test_lists_arrays_and_tensors(make: Any) -> None:
    got, found = ss.attention(Q, K, V, alpha=make(ALPHAS), causal=True, query_start=2, return_partition=True)
    assert isinstance(found, ss.Support)
    for head, alpha in enumerate(ALPHAS):
        want = ss.attention(Q, K, V, alpha=alpha, causal=True, query_start=2)
        torch.testing.assert_close(got[:, head], want[:, head], rtol=1e-13, atol=1e-13)


def test_arrays_give_arrays() -> None:
    got = ss.attention(Q.numpy(), K.numpy(), V.numpy(), alpha=np.array(ALPHAS))
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, ss.attention(Q, K, V, alpha=torch.tensor(ALPHAS)).numpy())


def test_additive_attention_and_readings_take_it_too() -> None:
    w_q, w_k, v_a = torch.randn(8, 3).double(), torch.randn(8, 3).double(), torch.randn(3).double()
    grad = torch.randn(2, 4, 5, 6, dtype=torch.float64)
    added = ss.additive_attention(Q, K, V, w_q, w_k, v_a, alpha=torch.tensor(ALPHAS))
    read = ss.gradient_readings(Q, K, V, grad, alpha=torch.tensor(ALPHAS))
    numbers = ss.gradient_readings(*(x.numpy() for x in (Q, K, V, grad)), alpha=np.array(ALPHAS))
    np.testing.assert_allclose(read.supply, numbers.supply, rtol=1e-9)
    for head, alpha in enumerate(ALPHAS):
        alone = ss.additive_attention(Q, K, V, w_q, w_k, v_a, alpha=alpha)
        torch.testing.assert_close(added[:, head], alone[:, head], rtol=1e-12, atol=1e-12)
        single = ss.gradient_readings(Q, K, V, grad, alpha=alpha)
        torch.testing.assert_close(read.supply[:, head], single.supply[:, head], rtol=1e-9, atol=1e-12)


def test_what_is_refused() -> None:
    refused(lambda: ss.attention(Q, K, V, alpha=[1.5, 2.0]), "alpha", "(2,)", "(4,)")
    refused(lambda: ss.attention(Q, K, V, alpha=[1.5, 0.5, 2.0, 1.0]), "alpha", "0.5", "finite")
    refused(lambda: ss.attention(Q, K, V, alpha=torch.tensor([1.5, 1.5, 2.0, torch.inf])), "alpha", "inf")
    refused(lambda: ss.attention(Q, K, V, alpha=torch.tensor([1.5, 1.5, 2.0, torch.nan])), "alpha", "nan")
    refused(lambda: ss.attention(Q, K, V, alpha=torch.ones(4), sink=0.0), "sink", "alpha per head")


def test_one_graph_forward_and_back() -> None:
    torch.compiler.reset()

    def function(q: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        output, found = ss.attention(q, K, V, alpha=alpha, return_partition=True)
        return output * (1.0 + found.peak.unsqueeze(-1))

    results = []
    for f in (torch.compile(function, fullgraph=True, backend="aot_eager"), function):
        q, alpha = Q.clone().requires_grad_(), torch.tensor([1.2, 1.5, 1.7, 1.9]).double().requires_grad_()
        y = f(q, alpha)
        results.append([y, *torch.autograd.grad((y * y).sum(), (q, alpha))])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-13)


def test_a_row_that_sees_nothing_leaves_the_gradient_of_alpha_finite() -> None:
    shown = torch.tensor([[True] * 7, [False] * 7])
    alpha = torch.tensor([[1.5], [1.5]], dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad((ss.entmax(K[0, :, 0, :7], alpha, where=shown) ** 2).sum(), alpha)
    assert got[0].abs() > 1e-3
    assert got[1] == 0.0


class Head(torch.nn.Module):
    """Attention whose heads learn how sparse to be."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 16)
        self.sparse = torch.nn.Parameter(torch.tensor([0.0, 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.project(x).unflatten(-1, (2, 8)).transpose(1, 2)
        return ss.attention(heads, heads, heads, alpha=1.0 + torch.sigmoid(self.sparse)).transpose(1, 2).flatten(2)


def test_the_probe_hears_it_and_changes_no_bit() -> None:
    x = torch.randn(3, 12, 16, generator=torch.Generator().manual_seed(0))

    def train(model: Head) -> torch.Tensor:
        (model(x) ** 2).mean().backward()
        assert model.sparse.grad is not None
        return model.sparse.grad.clone()

    torch.manual_seed(0)
    bare = Head()
    torch.manual_seed(0)
    probed = Head()
    with ss.probe(probed, every=1) as scope:
        read = train(probed)
    assert torch.equal(read, train(bare))
    history = scope.history()
    assert history.sites[0].kind == "softscope"
    assert history.series("transmission").shape[-1] == 2
    assert np.isfinite(history.series("transmission")).all()
