"""Without options, every call matches `torch.nn.MultiheadAttention`, forward and backward."""

import inspect
import itertools

import pytest
import torch
from torch import Tensor, nn

import softscope.nn
from nn.same import BATCH, HEADS, SIZE, M, N, assert_same, both, generator, hold

LAYERS = {
    "plain": {},
    "no bias": {"bias": False},
    "other sizes": {"kdim": 3, "vdim": 4},
    "other sizes, no bias": {"kdim": 3, "vdim": 4, "bias": False},
    "bias_kv": {"add_bias_kv": True},
    "zero_attn": {"add_zero_attn": True},
    "bias_kv, zero_attn": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3},
}
FORMS = ["length first", "batch first", "no batch"]
MASKS = [
    "none",
    "boolean",
    "boolean per head",
    "additive",
    "additive per head",
    "padding",
    "additive padding",
    "boolean, padding",
    "boolean per head, padding",
    "additive, additive padding",
    "additive per head, additive padding",
]


def given(form: str, kind: str, dtype: torch.dtype, layer: dict) -> dict[str, Tensor]:
    """query, key and value: "self" is one tensor for all, "memory" one for key and value, "apart" three tensors."""
    g = generator(1)

    def tokens(length: int, size: int) -> Tensor:
        shape = {
            "length first": (length, BATCH, size),
            "batch first": (BATCH, length, size),
            "no batch": (length, size),
        }
        return torch.randn(shape[form], generator=g, dtype=dtype).requires_grad_(True)

    query = tokens(N, SIZE)
    if kind == "self":
        return {"query": query, "key": query, "value": query}
    key = tokens(M, layer.get("kdim", SIZE))
    value = key if kind == "memory" else tokens(M, layer.get("vdim", SIZE))
    return {"query": query, "key": key, "value": value}


def masked(name: str, form: str, m: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """The masks of that name; every query keeps a key, and additive masks are leaves."""
    g = generator(2)
    batch = () if form == "no batch" else (BATCH,)
    arguments = {}
    for part in name.split(", "):
        shape = (*batch, m) if "padding" in part else (N, m)
        if "per head" in part:
            shape = ((BATCH if batch else 1) * HEADS, N, m)
        hidden = torch.rand(shape, generator=g) < 0.4
        hidden[..., 0] = False
        mask = hidden
        if "additive" in part:
            mask = torch.randn(shape, generator=g, dtype=dtype).masked_fill(hidden, -torch.inf).requires_grad_(True)
        arguments["key_padding_mask" if "padding" in part else "attn_mask"] = mask
    return {} if name == "none" else arguments


def calls(layer: dict, mask: str, dtype: torch.dtype):
    for form, kind in itertools.product(FORMS, ("self", "memory", "apart")):
        inputs = given(form, kind, dtype, layer)
        if kind != "apart" and ("kdim" in layer or "vdim" in layer):
            continue
        arguments = masked(mask, form, M if kind != "self" else N, dtype)
        for need, average in ((False, True), (True, True), (True, False)):
            yield form, f"{form}, {kind}, {need}, {average}", inputs, {**arguments, "need_weights": need,
                                                                       "average_attn_weights": average}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_combination(layer: str, mask: str) -> None:
    for dtype in (torch.float64, torch.float32):
        count = 0
        modules = {first: both(**LAYERS[layer], batch_first=first, dtype=dtype) for first in (False, True)}
        for form, what, inputs, arguments in calls(LAYERS[layer], mask, dtype):
            theirs, ours = modules[form == "batch first"]
            hold(ours, theirs, inputs, arguments, what)
            count += 1
        assert count in (9, 27)


def triangle(n: int, m: int) -> Tensor:
    return torch.ones(n, m, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("layer", ["plain", "other sizes"])
@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_causal(layer: str, need: bool, padded: bool) -> None:
    theirs, ours = both(**LAYERS[layer], dtype=torch.float64)
    inputs = given("length first", "apart", torch.float64, LAYERS[layer])
    arguments = {"is_causal": True, "need_weights": need, "attn_mask": triangle(N, M)}
    if padded:
        arguments |= masked("padding", "length first", M, torch.float64)
    hold(ours, theirs, inputs, arguments, "causal")
    without = {name: value for name, value in arguments.items() if name != "attn_mask"}
    for got, wanted in zip(ours(**inputs, **without), ours(**inputs, **arguments), strict=True):
        assert_same(got, wanted, "causal without the mask")


@pytest.mark.parametrize("extra", ["bias_kv", "zero_attn"])
def test_causal_shows_the_keys_that_the_layer_adds_whether_or_not_weights_are_asked_for(extra: str) -> None:
    theirs, ours = both(**LAYERS[extra], dtype=torch.float64)
    inputs = given("length first", "self", torch.float64, {})
    causal = {"is_causal": True, "attn_mask": triangle(N, N)}
    hold(ours, theirs, inputs, causal, "with weights")
    wanted = theirs(**inputs, **causal)[0]
    for arguments in (causal, {"is_causal": True}):
        assert_same(ours(**inputs, **arguments, need_weights=False)[0], wanted, "without weights")
    # PyTorch drops the mask here, and the added key is hidden with it.
    assert not torch.allclose(theirs(**inputs, **causal, need_weights=False)[0], wanted)


@pytest.mark.parametrize("need", [False, True])
def test_masks_of_two_kinds_are_joined(need: bool) -> None:
    _, ours = both(dtype=torch.float64)
    inputs = given("length first", "apart", torch.float64, {})
    adds = masked("additive", "length first", M, torch.float64)["attn_mask"]
    hides = masked("padding", "length first", M, torch.float64)["key_padding_mask"]
    as_floats = torch.zeros(hides.shape, dtype=torch.float64).masked_fill(hides, -torch.inf)
    got = ours(**inputs, attn_mask=adds, key_padding_mask=hides, need_weights=need)
    wanted = ours(**inputs, attn_mask=adds, key_padding_mask=as_floats, need_weights=need)
    assert_same(got[0], wanted[0], "boolean padding, additive mask")


@pytest.mark.parametrize("lowest", [-torch.inf, torch.finfo(torch.float64).min])
@pytest.mark.parametrize("need", [False, True])
def test_a_query_that_sees_nothing_gets_zeros_and_the_others_their_due(need: bool, lowest: float) -> None:
    theirs, ours = both(dtype=torch.float64)
    inputs = given("no batch", "apart", torch.float64, {})
    hidden = torch.zeros(N, M, dtype=torch.bool)
    hidden[1] = True
    mask = torch.zeros(N, M, dtype=torch.float64).masked_fill(hidden, lowest)
    seen = [0, 2, 3]
    for attn_mask in (hidden, mask):
        output, weights = ours(**inputs, attn_mask=attn_mask, need_weights=need)
        assert torch.equal(output[1], ours.out_proj.bias)  # zeros, passed through W_O
        assert not need or bool((weights[1] == 0.0).all())
        wanted = theirs(**inputs, attn_mask=hidden, need_weights=need)[0]
        assert_same(output[seen], wanted[seen], "the others")
        leaves = [*inputs.values(), *ours.parameters()]
        assert all(x.isfinite().all() for x in torch.autograd.grad(output.sum(), leaves))


def test_the_arguments_are_the_same() -> None:
    for name in ("__init__", "forward"):
        theirs, ours = (inspect.signature(getattr(kind, name)).parameters
                        for kind in (nn.MultiheadAttention, softscope.nn.MultiheadAttention))  # fmt: skip
        common = {key: ours[key].default for key in theirs}
        assert list(common.items()) == [(key, parameter.default) for key, parameter in theirs.items()]
        assert list(ours)[: len(theirs)] == list(theirs)
        assert all(ours[key].kind is inspect.Parameter.KEYWORD_ONLY for key in ours.keys() - theirs.keys())


@pytest.mark.parametrize("layer", LAYERS)
def test_the_first_values_are_the_same_and_so_is_the_random_state_after_them(layer: str) -> None:
    found = []
    for kind in (nn.MultiheadAttention, softscope.nn.MultiheadAttention):
        torch.manual_seed(3)
        module = kind(SIZE, HEADS, **LAYERS[layer])
        state = torch.get_rng_state()
        module._reset_parameters()
        found.append((module.state_dict(), state, torch.get_rng_state()))
    (theirs, *random), (ours, *our_random) = found
    assert list(theirs) == list(ours)
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    assert all(torch.equal(a, b) for a, b in zip(random, our_random, strict=True))


@pytest.mark.parametrize("shape", [(0, BATCH), (N, 0)])
def test_nothing_in_nothing_out(shape: tuple[int, int]) -> None:
    theirs, ours = both()
    x = torch.zeros(*shape, SIZE)
    for need in (False, True):
        for got, wanted in zip(ours(x, x, x, need_weights=need), theirs(x, x, x, need_weights=need), strict=True):
            assert_same(got, wanted, f"{shape}")
