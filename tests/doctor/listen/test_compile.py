"""Compiled models: sampled steps run uncompiled, the others run as compiled, and nothing is recompiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss

from ..patients import stack, tokens


class Compiler:
    """A backend that counts compilations and runs the graph unchanged."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: Any, _: Any) -> Any:
        self.graphs += 1
        return graph.forward


def ways(model: nn.Module, backend: Compiler) -> dict[str, Any]:
    return {
        "torch.compile": lambda: torch.compile(model, backend=backend),
        "in place": lambda: (model.compile(backend=backend), model)[1],
        "layer by layer": lambda: ([layer.compile(backend=backend) for layer in model.layers], model)[1],
    }


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own, once per layer, even without a probe
@pytest.mark.parametrize("way", ["torch.compile", "in place", "layer by layer"])
@pytest.mark.parametrize("first", ["compiled first", "probed first"])
def test_no_extra_graph_and_the_same_readings(way: str, first: str) -> None:
    def run(probed: bool) -> tuple[int, Any, list[torch.Tensor]]:
        torch._dynamo.reset()
        backend = Compiler()
        model = stack("fused")
        model.dropout.p = 0.0
        called = ways(model, backend)[way]()
        outputs = []

        def steps() -> None:
            for _ in range(5):
                output = called(tokens())
                output.mean().backward()
                for p in model.parameters():
                    p.grad = None
                outputs.append(output.detach())

        if first == "compiled first":
            called(tokens())
        if not probed:
            steps()
            return backend.graphs, None, outputs
        with ss.probe(called, every=3) as scope:
            for _ in range(5):
                output = called(tokens())
                output.mean().backward()
                scope.step()
                outputs.append(output.detach())
        called(tokens())
        return backend.graphs, scope.history(), outputs

    bare, _, wanted = run(probed=False)
    graphs, history, outputs = run(probed=True)
    assert graphs == bare > 0
    for got, want in zip(outputs, wanted, strict=True):
        torch.testing.assert_close(got, want)
    assert [site.name for site in history.sites] == ["layers.0", "layers.1"]
    assert [snapshot.step for snapshot in history.snapshots] == [0, 3]
    model = stack("fused")
    model.dropout.p = 0.0
    with ss.probe(model) as scope:
        model(tokens()).mean().backward()
    eager = scope.history().snapshots[0].readings
    assert all((abs(eager[x] - y) < 1e-4).all() for x, y in history.snapshots[0].readings.items() if x == "sharpness")
    assert history.snapshots[0].has_loss


def test_compiled_behind_the_probes_back() -> None:
    model = stack("fused")
    hidden = torch.compile(model, backend=Compiler())
    with ss.probe(model) as scope:
        hidden(tokens()).mean().backward()
    assert not scope.history().snapshots


@torch.compile(backend=lambda graph, _: FUNCTIONS.append(graph) or graph.forward)
def compiled_helper(x: Tensor) -> Tensor:
    y = torch.where(x > 0, x.exp() * 2.0, x.view(-1).reshape(x.shape)) + torch.cat([x[..., :1], x[..., 1:]], dim=-1)
    return functional.softmax(torch.matmul(y, y.mT), dim=-1) @ y


FUNCTIONS: list[Any] = []


class WithHelper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = stack("fused")

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(compiled_helper(x))


@pytest.mark.parametrize("first", ["compiled first", "probed first"])
def test_a_compiled_function_is_not_compiled_again(first: str) -> None:
    """It found our wrappers where torch's functions had been, and was compiled anew, in pieces."""
    FUNCTIONS.clear()
    model = WithHelper()
    if first == "compiled first":
        model(tokens())
    with ss.probe(model, every=2) as scope:
        for _ in range(4):
            model(tokens()).mean().backward()
            scope.step()
    assert len(FUNCTIONS) == 1
    assert [site.name for site in scope.history().sites] == ["WithHelper", "inner.layers.0", "inner.layers.1"]
    assert not scope.history().unseen


def test_two_probes_leave_compilation_as_it_was() -> None:
    """Their passes end in the order they began, not the other way round."""
    backend = Compiler()
    model = stack("fused")
    called = torch.compile(model, backend=backend)
    with ss.probe(called), ss.probe(model):
        called(tokens())
    called(tokens())
    assert backend.graphs > 0
