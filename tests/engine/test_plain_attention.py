"""The short way of attention: the same bits as the full one, refused where anything is unusual, and seen by a probe."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import softscope as ss
from softscope._arguments.arrays import unchanged
from softscope._arguments.attention import prepare
from softscope._attention import attend
from softscope._backends.torch.plain_attention import plain_attention

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SIZES = [(1, 1, 1, 4, 4, 8, 8), (2, 4, 2, 7, 33, 5, 3), (1, 8, 8, 1, 300, 64, 64), (3, 6, 1, 40, 40, 32, 16)]


def tensors(sizes: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    batch, heads, kv_heads, n, m, d, dv = sizes
    torch.manual_seed(0)
    shapes = (batch, heads, n, d), (batch, kv_heads, m, d), (batch, kv_heads, m, dv)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def full(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, statistics: bool = False, **named: Any) -> Any:
    """By the full path, which the public function takes if the short way refuses."""
    return attend(prepare(q, k, v, **named), unchanged, statistics)


def short(q: Any, k: Any, v: Any, *options: Any, **named: Any) -> Any:
    found = plain_attention(q, k, v, *options, **named)
    return None if found is None else found[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("named", [{}, {"causal": True}, {"causal": True, "query_start": 5}, {"scale": 0.3}])
def test_the_same_bits(sizes: tuple[int, ...], dtype: torch.dtype, named: dict[str, Any]) -> None:
    q, k, v = tensors(sizes, dtype)
    found = short(q, k, v, named.get("scale"), named.get("causal", False), named.get("query_start", 0))
    assert found is not None
    assert torch.equal(found, full(q, k, v, **named))
    assert torch.equal(ss.attention(q, k, v, **named), found)


def test_strides_of_any_kind() -> None:
    q, k, v = (torch.randn(2, 9, 4, 16).transpose(1, 2) for _ in range(3))
    wide = torch.randn(2, 4, 20, 16)[:, :, ::2]
    shared = torch.randn(1, 4, 9, 16).expand(2, 4, 9, 16)
    for given in ((q, k, v), (q, wide, wide), (wide, shared, v), (q[:, :, 3:], k, shared)):
        assert plain_attention(*given, None, True, 0) is not None
        assert torch.equal(ss.attention(*given, causal=True), full(*given, causal=True))


def test_what_is_unusual_takes_the_full_path() -> None:
    q, k, v = tensors((2, 4, 2, 7, 9, 8, 8), torch.float32)
    bad: list[tuple[Any, ...]] = [
        (q.numpy(), k, v), (q[0], k, v[0]), (q[0, 0], k[0, 0], v[0, 0]), (q, k.double(), v), (q, k[:1], v),
        (q, k, v[:, :, :5]), (q[:, :3], k, v), (q[:, :, :0], k, v),
        (q.transpose(2, 3).contiguous().transpose(2, 3), k, v), (q, k, v.to_sparse()), (q[..., :4], k, v),
    ]  # fmt: skip
    for given in bad:
        assert plain_attention(*given, None, False, 0) is None
    for scale, causal, start in (
        (math.nan, False, 0),
        (True, False, 0),
        (None, 1, 0),
        (None, False, 1.0),
        (-1.0, True, 0),
    ):
        assert plain_attention(q, k, v, scale, causal, start) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert plain_attention(q, k, v, None, False, 0) is None
        assert ss.attention(q, k, v).dtype == torch.bfloat16


def test_a_gradient_is_not_lost() -> None:
    q, k, v = (x.requires_grad_() for x in tensors((1, 2, 2, 5, 5, 8, 8), torch.float32))
    assert ss.attention(q, k, v).requires_grad
    with torch.no_grad():
        assert torch.equal(ss.attention(q, k, v), full(q, k, v))


def test_errors_keep_their_words() -> None:
    q, k, v = tensors((1, 2, 2, 5, 5, 8, 8), torch.float32)
    with pytest.raises(ValueError, match="scale must be finite"):
        ss.attention(q, k, v, scale=math.inf)
    with pytest.raises(TypeError, match="causal"):
        ss.attention(q, k, v, causal=1)  # type: ignore[call-overload]


def test_a_probe_hears_it() -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return ss.attention(x, x, x)

    with ss.probe(Layer(), every=1) as scope, torch.no_grad():
        scope.model(torch.randn(2, 3, 40, 8))
        scope.step()
    assert [site.heads for site in scope.sites] == [3]


BLOCKED = torch.rand(7, 33, generator=torch.Generator().manual_seed(3)) > 0.3
ADDED = torch.randn(2, 1, 7, 33, generator=torch.Generator().manual_seed(4))
OPTIONS: list[dict[str, Any]] = [
    {"mask": BLOCKED},
    {"mask": ADDED},
    {"mask": ADDED.double().expand(2, 4, 7, 33)},
    {"mask": BLOCKED[:1], "causal": True, "query_start": 9},
    {"mask": BLOCKED.T.contiguous().T},
    {"window": (3, 2)},
    {"window": (None, 2), "causal": True, "query_start": 20},
    {"softcap": 3, "scale": 2},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("named", OPTIONS, ids=lambda named: "-".join(named))
def test_options_statistics_and_gradients_have_the_same_bits(named: dict[str, Any], dtype: torch.dtype) -> None:
    inputs = [x.requires_grad_() for x in tensors((2, 4, 2, 7, 33, 5, 3), dtype)]
    start = {"start" if name == "query_start" else name: value for name, value in named.items()}
    assert plain_attention(*inputs, **start, statistics=True) is not None
    found = []
    for call in (ss.attention(*inputs, **named, return_partition=True), full(*inputs, **named, statistics=True)):
        output, partition = call
        slopes = torch.autograd.grad(output, inputs, torch.ones_like(output))
        found.append([output, *partition.state, partition.highest, *slopes])
    for got, wanted in zip(*found, strict=True):
        assert torch.equal(torch.nan_to_num(got), torch.nan_to_num(wanted))


def test_masks_that_do_not_fit_take_the_full_path() -> None:
    q, k, v = tensors((2, 4, 2, 7, 33, 5, 3), torch.float32)
    for mask in (
        BLOCKED[:5],
        BLOCKED.to(torch.int64),
        ADDED.clone().requires_grad_(),
        BLOCKED.numpy(),
        BLOCKED[None, None, None],
    ):
        assert plain_attention(q, k, v, mask=mask) is None


def test_a_head_without_a_batch() -> None:
    q, k, v = (x[0] for x in tensors((1, 4, 2, 7, 33, 5, 3), torch.float32))
    assert plain_attention(q, k, v) is not None
    assert torch.equal(ss.attention(q, k, v, causal=True), full(q, k, v, causal=True))


def test_second_derivatives() -> None:
    inputs = [x.requires_grad_() for x in tensors((1, 2, 1, 3, 4, 3, 2), torch.float64)]
    assert plain_attention(*inputs, causal=True, start=1) is not None
    assert torch.autograd.gradgradcheck(lambda *z: ss.attention(*z, causal=True, query_start=1), inputs)
