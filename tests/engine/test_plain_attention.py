"""The short way of attention: the same bits as the full one, refused where anything is unusual, and seen by a probe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import softscope as ss
from softscope._arguments.arrays import unchanged
from softscope._arguments.attention import NO_VALUES, prepare
from softscope._attention import attend
from softscope._backends.choose import attention_backend_of, plain_statistics
from softscope._backends.engine import plain_attention as arrays
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
        (q.numpy(), k, v), (q, k.numpy(), v), (q[0], k, v[0]), (q[0, 0], k[0], v[0]), (q[0, 0, 0],) * 3,
        (q, k.double(), v), (q, k[:1], v),
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


def numbered(found: Any) -> list[Any]:
    """The output and the statistics of a call, as arrays."""
    output, partition = found
    return [np.asarray(part) for part in (output, *partition.state, partition.highest)]


def as_array(x: Any) -> Any:
    return x.numpy() if isinstance(x, torch.Tensor) else x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("named", [{}, *OPTIONS], ids=lambda named: "-".join(named))
@pytest.mark.parametrize("axes", [4, 3, 2])
def test_arrays_have_the_same_bits(named: dict[str, Any], dtype: torch.dtype, axes: int) -> None:
    q, k, v = (x.numpy()[(0,) * (4 - axes)] for x in tensors((2, 4, 2, 7, 33, 5, 3), dtype))
    named = {name: as_array(value) for name, value in named.items()}
    if getattr(named.get("mask"), "ndim", 0) == 4:
        named["mask"] = named["mask"][(0,) * (4 - axes)]
    order = ("scale", "causal", "query_start", "window", "mask", "softcap")
    options = [named.get(name, {"causal": False, "query_start": 0}.get(name)) for name in order]
    assert arrays.plain_attention(q, k, v, *options, True) is not None
    found, wanted = ss.attention(q, k, v, **named, return_partition=True), full(q, k, v, **named, statistics=True)
    for got, expected in zip(numbered(found), numbered(wanted), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)
    np.testing.assert_array_equal(ss.attention(q, k, v, **named), found[0], strict=True)


@pytest.mark.parametrize("named", [{}, *OPTIONS], ids=lambda named: "-".join(named))
@pytest.mark.parametrize("kind", [*DTYPES, "array"], ids=str)
def test_statistics_alone_have_the_same_bits(named: dict[str, Any], kind: Any) -> None:
    q, k, _ = tensors((2, 4, 2, 7, 33, 5, 3), torch.float32 if kind == "array" else kind)
    if kind == "array":
        q, k, named = as_array(q), as_array(k), {name: as_array(value) for name, value in named.items()}
    else:
        q.requires_grad_()
    assert plain_statistics(q, k, None, False, 0, None, named.get("mask"), None) is not None
    found = ss.attention_partition(q, k, **named)
    state, highest = attention_backend_of(q).statistics_of_rows(prepare(q, k, NO_VALUES, **named), None)
    assert isinstance(found, ss.Partition)
    for got, wanted in zip((*found.state, found.highest), (*state, highest), strict=True):
        assert not getattr(got, "requires_grad", False)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted), strict=True)


def test_arrays_that_are_unusual_take_the_full_path() -> None:
    q, k, v = (x.numpy() for x in tensors((2, 4, 2, 7, 9, 8, 8), torch.float32))
    swapped = q.astype(q.dtype.newbyteorder())
    bad: list[tuple[Any, ...]] = [
        (q, k, torch.tensor(v)), (q[0], k, v[0]), (q, k.astype(np.float64), v), (q, k[:1], v), (q, k, None),
        (q, k, v[:, :, :5]), (q[:, :3], k, v), (q[:, :, :0], k, v), (q[..., ::2], k[..., ::2], v), (swapped, k, v),
        (q.astype(np.int32), k, v), (q[None], k[None], v[None]), (q.tolist(), k, v), (np.ma.array(q), k, v),
    ]  # fmt: skip
    for given in bad:
        assert arrays.plain_attention(*given, None, False, 0, None, None, None, False) is None
    mask = np.ones((7, 9), bool)
    for wrong in (mask[:5], mask.astype(int), torch.tensor(mask), mask.tolist(), mask[None, None, None]):
        assert arrays.plain_attention(q, k, v, None, False, 0, None, wrong, None, False) is None


@pytest.mark.parametrize("make", [torch.tensor, np.asarray], ids=["tensor", "array"])
def test_a_mask_for_a_batch_needs_one(make: Any) -> None:
    x, mask = make(np.ones((2, 3, 4))), make(np.ones((1, 2, 3, 3), bool))
    for _ in range(2):  # the first tensor loads the short way
        with pytest.raises(ValueError, match="mask must broadcast"):
            ss.attention(x, x, x, mask=mask)


def test_a_single_head_keeps_its_gradient() -> None:
    q, k, v = (x[0, 0].requires_grad_() for x in tensors((1, 1, 1, 5, 6, 8, 3), torch.float32))
    assert torch.equal(ss.attention(q, k, v), full(q, k, v))
    assert ss.attention(q, k, v).requires_grad
    with torch.no_grad():
        assert plain_attention(q, k, v) is not None
        assert torch.equal(ss.attention(q, k, v, causal=True), full(q, k, v, causal=True))


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
