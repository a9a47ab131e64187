"""`softscope.nn.scaled_dot_product_attention` against PyTorch's function of the same name."""

import inspect
import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nn.same import assert_same, generator, gradients
from softscope.nn import scaled_dot_product_attention

B, H, N, M, D = 2, 4, 3, 5, 6
SHAPES = {
    "four axes": ((B, H, N, D), (B, H, M, D), (B, H, M, D)),
    "values of another size": ((B, H, N, D), (B, H, M, D), (B, H, M, 2)),
    "three axes": ((H, N, D), (H, M, D), (H, M, D)),
    "two axes": ((N, D), (M, D), (M, D)),
    "five axes": ((2, B, H, N, D), (2, B, H, M, D), (2, B, H, M, D)),
    "one batch of keys": ((B, H, N, D), (1, H, M, D), (1, H, M, D)),
    "no batch of keys": ((B, H, N, D), (H, M, D), (H, M, D)),
    "one key head": ((B, H, N, D), (B, 1, M, D), (B, 1, M, D)),
    "one query head": ((B, 1, N, D), (B, H, M, D), (B, H, M, D)),
}
MASKS = {"none": None, "boolean": (N, M), "boolean, keys": (1, M), "additive": (N, M), "additive per head": (H, N, M)}


def drawn(shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> list[Tensor]:
    g = generator(8)
    return [torch.randn(shape, generator=g, dtype=dtype).requires_grad_(True) for shape in shapes]


def masked(name: str, dtype: torch.dtype) -> Tensor | None:
    g = generator(9)
    if MASKS[name] is None:
        return None
    shown = torch.rand(MASKS[name], generator=g) < 0.6
    shown[..., 0] = True
    if "boolean" in name:
        return shown
    return torch.randn(MASKS[name], generator=g, dtype=dtype).masked_fill(~shown, -torch.inf).requires_grad_(True)


def hold(tensors: list[Tensor], **arguments) -> None:
    results = []
    mask = arguments.get("attn_mask")
    leaves = tensors + ([mask] if mask is not None and mask.requires_grad else [])
    for function in (scaled_dot_product_attention, functional.scaled_dot_product_attention):
        output = function(*tensors, **arguments)
        results.append([output, *gradients([output], leaves)])
    for i, (got, wanted) in enumerate(zip(*results, strict=True)):
        assert_same(got, wanted, f"{arguments}, {i}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shapes", SHAPES)
def test_every_combination(shapes: str, dtype: torch.dtype) -> None:
    tensors = drawn(SHAPES[shapes], dtype)
    for mask, scale in itertools.product(MASKS, (None, 0.3)):
        if mask != "additive per head" or tensors[0].ndim > 2:
            hold(tensors, attn_mask=masked(mask, dtype), scale=scale)
    hold(tensors, is_causal=True)


def test_causal_begins_at_the_first_key_whatever_the_lengths() -> None:
    for n, m in ((5, 3), (3, 5)):
        hold(drawn(((1, n, D), (1, m, D), (1, m, D)), torch.float64), is_causal=True)


@pytest.mark.parametrize("arguments", [{}, {"is_causal": True}, {"attn_mask": masked("additive", torch.float64)}])
def test_grouped_queries(arguments: dict) -> None:
    shapes = ((B, 4, N, D), (B, 2, M, D), (B, 2, M, D))
    hold(drawn(shapes, torch.float64), enable_gqa=True, **arguments)


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    tensors = drawn(SHAPES["four axes"], torch.float64)
    shown = torch.ones(N, M, dtype=torch.bool)
    shown[1] = False
    hold(tensors, attn_mask=shown)
    for p in (0.0, 0.5):
        assert bool((scaled_dot_product_attention(*tensors, attn_mask=shown, dropout_p=p)[..., 1, :] == 0.0).all())


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize(
    "arguments", [{"scale": 0.9}, {"is_causal": True}, {"attn_mask": masked("additive", torch.float64)}]
)
def test_dropout_drops_what_pytorch_drops(shapes: str, arguments: dict) -> None:
    """On the CPU both materialise the weights and draw one random number for each, in order."""
    tensors = drawn(SHAPES[shapes], torch.float64)
    found = []
    for function in (scaled_dot_product_attention, functional.scaled_dot_product_attention):
        torch.manual_seed(0)
        found.append(function(*tensors, **arguments, dropout_p=0.4))
    assert_same(*found, "dropout")
    assert not torch.allclose(found[0], scaled_dot_product_attention(*tensors, **arguments))


def test_grouped_queries_with_dropout() -> None:
    q, k, v = drawn(((B, 4, N, D), (B, 2, M, D), (B, 2, M, D)), torch.float64)
    torch.manual_seed(0)
    got = scaled_dot_product_attention(q, k, v, dropout_p=0.3, enable_gqa=True)
    torch.manual_seed(0)
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    assert_same(got, scaled_dot_product_attention(q, k, v, dropout_p=0.3), "grouped")


def test_everything_dropped() -> None:
    tensors = drawn(SHAPES["four axes"], torch.float64)
    assert not scaled_dot_product_attention(*tensors, dropout_p=1.0).any()


def test_the_signature() -> None:
    names = "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False"
    signature = inspect.signature(scaled_dot_product_attention)
    empty = inspect.Parameter.empty
    told = ", ".join(p.name if p.default is empty else f"{p.name}={p.default}" for p in signature.parameters.values())
    assert told == names
    assert f"({names})" in " ".join(functional.scaled_dot_product_attention.__doc__.split())


@pytest.mark.parametrize(("kind", "sentence", "tensors", "arguments"), [
    (ValueError, "attn_mask must be None when is_causal is True, but got both; put the causal triangle into the mask",
     SHAPES["two axes"], {"is_causal": True, "attn_mask": torch.ones(N, M, dtype=torch.bool)}),
    (ValueError, "query and key must have the same number of heads, but got 4 and 2; pass enable_gqa=True if each key "
     "head serves a group of query heads", ((4, N, D), (2, M, D), (2, M, D)), {}),
    (ValueError, "dropout_p must lie in [0.0, 1.0], but got 1.5; 0.0 drops nothing", SHAPES["two axes"],
     {"dropout_p": 1.5}),
    (TypeError, "query must be a tensor (…, heads, n, d), but got shape (6,); convert or reshape it",
     ((D,), (M, D), (M, D)), {}),
    (TypeError, "is_causal must be True or False, but got 1; pass one of these", SHAPES["two axes"], {"is_causal": 1}),
    (ValueError, "mask must broadcast to (…, heads, n, m) = (1, 3, 5), but has shape (3, 4); insert axes of size 1 "
     "where it is shared", SHAPES["two axes"], {"attn_mask": torch.ones(N, 4)}),
])  # fmt: skip
def test_what_is_refused(kind: type[Exception], sentence: str, tensors: tuple, arguments: dict) -> None:
    with pytest.raises(kind) as caught:
        scaled_dot_product_attention(*drawn(tensors, torch.float32), **arguments)
    assert str(caught.value) == sentence


def test_arrays_are_refused() -> None:
    q = torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"query must be a tensor .*, but got ndarray;"):
        scaled_dot_product_attention(q.numpy(), q, q)
