"""torch.compile without graph breaks, torch.func, and the registration of the custom operator."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import softscope as ss

X = torch.randn(3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
P, V = torch.softmax(X, dim=-1), X.flip(0)
HOT = torch.tensor([[0.5], [1.0], [2.0]], dtype=torch.float64)
SHOWN = X > -1.0
TARGETS = torch.tensor([0, 4, -100])


def readings(x: torch.Tensor, t: Any) -> torch.Tensor:
    p = ss.partition(x, temperature=t)
    return torch.stack([p.lse, p.entropy, p.collision, p.peak, p.variance, p.jacobian_trace, p.sharpness])


FAMILY: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "softmax": lambda x, t: ss.softmax(x, temperature=t),
    "softmax, where, axis": lambda x, t: ss.softmax(x, axis=(0, 1), where=SHOWN) * t,
    "log_softmax": lambda x, t: ss.log_softmax(x, temperature=t),
    "logsumexp": lambda x, t: ss.logsumexp(x, temperature=t, keepdims=True),
    "sparsemax": lambda x, t: ss.sparsemax(x, temperature=t),
    "entmax": lambda x, t: ss.entmax(x, 1.0 + t / 4.0, temperature=t),
    "jacobian_product": lambda x, t: ss.jacobian_product(torch.softmax(x, -1), V, temperature=t),
    "cross_entropy": lambda x, t: ss.cross_entropy(x, TARGETS, temperature=t, label_smoothing=0.1),
    "partition": readings,
}


@pytest.mark.parametrize("name", FAMILY)
def test_one_graph_forward_and_back(name: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(FAMILY[name], fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, FAMILY[name]):
        x, t = X.clone().requires_grad_(True), HOT.clone().requires_grad_(True)
        y = function(x, t)
        results.append([y, *torch.autograd.grad((y * y).sum(), (x, t))])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-13)


def test_compiled_code_does_not_look_at_the_values_of_a_temperature() -> None:
    torch.compiler.reset()
    compiled = torch.compile(lambda x, t: ss.softmax(x, temperature=t), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X, HOT), ss.softmax(X, temperature=HOT))
    compiled(X, -HOT)  # eager mode would refuse it
    with pytest.raises(ValueError, match="temperature"):
        ss.softmax(X, temperature=-HOT)


@pytest.mark.parametrize("function", [ss.softmax, ss.log_softmax, ss.logsumexp, ss.sparsemax, ss.entmax])
def test_meta_tensors_give_shapes_and_dtypes(function: Callable[..., torch.Tensor]) -> None:
    for dtype in (torch.float16, torch.float32, torch.float64):
        got, wanted = function(torch.empty(3, 5, dtype=dtype, device="meta")), function(X.to(dtype))
        assert got.device.type == "meta"
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize("name", [name for name in FAMILY if name not in {"cross_entropy", "softmax, where, axis"}])
def test_vmap(name: str) -> None:
    function = FAMILY[name]
    if name == "jacobian_product":
        got = torch.func.vmap(lambda x, v: ss.jacobian_product(x, v, temperature=0.5))(P, V)
        wanted = ss.jacobian_product(P, V, temperature=0.5)
    elif name == "entmax":
        got, wanted = torch.func.vmap(lambda x: ss.entmax(x, 1.3))(X), ss.entmax(X, 1.3)
    else:
        got = torch.func.vmap(lambda x: function(x, 0.5))(X)
        wanted = function(X, 0.5).T if name == "partition" else function(X, 0.5)
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("alpha", "needs"), [(1.3, (True, True)), (1.0, (True, False)), (2.0, (False, True)), (3.0, (True, True))]
)
def test_the_operator_is_registered_as_torch_wants(alpha: float, needs: tuple[bool, bool]) -> None:
    assert ss.entmax(X, 1.5).shape == X.shape  # this call registers it
    d = (X - X.amax(dim=-1, keepdim=True)).requires_grad_(needs[0])
    a = torch.full((3, 1), alpha, dtype=torch.float64).requires_grad_(needs[1])
    torch.library.opcheck(torch.ops.softscope.entmax.default, (d, a))


def test_the_operator_takes_other_dtypes_and_layouts() -> None:
    for x in (X.float(), X.T.contiguous().T, X[:, ::2], X[:0]):
        d = x - x.amax(dim=-1, keepdim=True)
        alpha = torch.full((len(x), 1), 1.5, dtype=torch.float64)
        torch.library.opcheck(torch.ops.softscope.entmax.default, (d, alpha))
