"""PyTorch's tools around the module: compile, autocast, half precision, checkpointing, functional calls."""

import copy

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import softscope.nn
from nn.same import BATCH, HEADS, SIZE, N, assert_same, both, generator
from softscope.nn import composite

OPTIONS = {
    "none": {},
    "softmax, all": {"qk_norm": "rms", "softcap": 2.0, "temperature": True, "sink": True},
    "entmax": {"qk_norm": "unit", "alpha": 1.5, "scale": 4.0},
}


def tokens(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(N, BATCH, SIZE, generator=generator(12), dtype=dtype)


def built(name: str, **arguments) -> softscope.nn.MultiheadAttention:
    torch.manual_seed(0)
    return softscope.nn.MultiheadAttention(SIZE, HEADS, **OPTIONS[name], **arguments)


def trained(layer, x, **arguments) -> list[torch.Tensor]:
    output, weights = layer(x, x, x, **arguments)
    loss = output.float().pow(2).sum()
    return [output, *([] if weights is None else [weights]), *torch.autograd.grad(loss, list(layer.parameters()))]


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_one_graph_forward_and_back(name: str, need: bool) -> None:
    torch.compiler.reset()
    layer, x = built(name, dtype=torch.float64), tokens(torch.float64)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    arguments = {"key_padding_mask": torch.arange(N).expand(BATCH, N) > 2}
    arguments |= {"attn_mask": torch.ones(N, N, dtype=torch.bool).triu(1)} if need else {"is_causal": True}
    results = [trained(module, x, need_weights=need, **arguments) for module in (compiled, layer)]
    for got, wanted in zip(*results, strict=True):
        assert_same(got, wanted, f"{arguments}", ulps=64.0)


def test_the_partition_comes_out_of_a_compiled_layer() -> None:
    torch.compiler.reset()
    layer, x = built("softmax, all", dtype=torch.float64), tokens(torch.float64)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = [module(x, x, x, need_weights=False, return_partition=True)[2].entropy for module in (compiled, layer)]
    assert_same(*found, "entropy")


def assert_near(output: torch.Tensor, layer: torch.nn.Module, x: torch.Tensor, ulps: float) -> None:
    """Within a few roundings, in the dtype returned, of the float64 result."""
    wide = x.double()
    wanted = copy.deepcopy(layer).double()(wide, wide, wide)[0].detach()
    error, bound = float((output.detach() - wanted).abs().max()), ulps * torch.finfo(output.dtype).eps
    assert error <= bound * max(1.0, float(wanted.abs().max())), (error, bound)


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_autocast(name: str, need: bool) -> None:
    layer, x = built(name), tokens()
    with torch.autocast("cpu", torch.bfloat16):
        output, weights = layer(x, x, x, need_weights=need)
    assert output.dtype == torch.bfloat16
    assert_near(output, layer, x, ulps=4.0)
    output.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 and bool(p.grad.isfinite().all()) for p in layer.parameters())
    assert weights is None or weights.shape == (BATCH, N, N)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPTIONS)
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    layer = built(name).to(dtype)
    x = tokens().to(dtype)
    for need in (False, True):
        output, weights = layer(x, x, x, need_weights=need)
        assert output.dtype == dtype
        assert weights is None or weights.dtype == dtype
        assert_near(output, layer, x, ulps=2.0)


@pytest.mark.parametrize("autocast", [False, True])
def test_written_weights_come_from_logits_in_float32(autocast: bool) -> None:
    """The logits are 256, 256.125, 256.25, …: all the same in bfloat16."""
    q, k, v = torch.full((1, 1, 16), 4.0), torch.full((1, 8, 16), 4.0), torch.eye(8)[None]
    k[..., 0] += torch.arange(8) / 32
    q, k, v = (x.bfloat16() for x in (q, k, v))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output, weights = composite.attend(q, k, v, scale=1.0)
    wanted, wide = composite.attend(q.double(), k.double(), v.double(), scale=1.0)
    assert output.dtype == weights.dtype == torch.bfloat16
    for got, exact in ((output, wanted), (weights, wide)):
        assert float((got - exact).abs().max()) <= torch.finfo(torch.bfloat16).eps * float(exact.abs().max())


@pytest.mark.parametrize("name", OPTIONS)
def test_checkpointing_gives_the_same_gradients(name: str) -> None:
    layer, x = built(name, dropout=0.2, dtype=torch.float64), tokens(torch.float64)

    def again(*inputs, **arguments):
        return checkpoint(layer, *inputs, use_reentrant=False, **arguments)

    again.parameters = layer.parameters
    results = []
    for function in (again, layer):
        torch.manual_seed(3)
        results.append(trained(function, x))
    for got, wanted in zip(*results, strict=True):
        assert_same(got, wanted, "checkpoint")


@pytest.mark.parametrize("need", [False, True])
def test_a_meta_layer_gives_shapes(need: bool) -> None:
    layer, x = built("softmax, all", device="meta"), tokens().to("meta")
    output, weights = layer(x, x, x, need_weights=need)
    assert output.shape == (N, BATCH, SIZE)
    assert weights is None or weights.shape == (BATCH, N, N)


def test_hooks_and_replaced_parts_of_the_output_projection_are_called() -> None:
    _, ours = both()
    called = []
    ours.out_proj.register_forward_hook(lambda *_: called.append(True))
    x = tokens()
    ours(x, x, x)
    assert called == [True]


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_the_output_lies_in_memory_in_the_order_of_its_axes(first: bool, need: bool) -> None:
    _, ours = both(batch_first=first)
    x = tokens()
    assert ours(x, x, x, need_weights=need)[0].is_contiguous()


def test_nan_in_a_hidden_key_or_value_reaches_nobody():
    """Neither the output nor any gradient: 0·NaN is NaN, so the product must not see it."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
    mask = torch.arange(5) != 3
    wanted = composite.attend(q, k, v, scale=0.5, mask=mask)[0]
    with torch.no_grad():
        k[:, :, 3], v[:, :, 3] = float("nan"), float("nan")
    output, weights = composite.attend(q, k, v, scale=0.5, mask=mask)
    torch.testing.assert_close(output, wanted)
    assert (weights[..., 3] == 0.0).all()
    output.sum().backward()
    assert torch.isfinite(q.grad).all()
