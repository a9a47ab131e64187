"""Inside PyTorch's transformer layers: the same results, and never bypassed by their fused call."""

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import softscope.nn
from nn.same import BATCH, N, assert_same, generator

SIZE, HEADS = 8, 2  # even: the fused call is never taken with an odd number of heads
OPTIONS = [{"softcap": 0.5}, {"sink": True}, {"alpha": 2.0}, {"temperature": True}, {"qk_norm": "unit"}, {"scale": 5.0}]


def tokens() -> Tensor:
    return torch.randn(BATCH, N, SIZE, generator=generator(7))


def padding() -> Tensor:
    hidden = torch.zeros(BATCH, N, dtype=torch.bool)
    hidden[0, 2:] = True
    hidden[1, 3:] = True
    return hidden


def causal() -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(N)


def encoder(layers: int = 2, **arguments) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(SIZE, HEADS, 16, dropout=0.0, batch_first=True, **arguments)
    return nn.TransformerEncoder(layer, layers)


CALLS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "plain": lambda model, x: model(x),
    "padded": lambda model, x: model(x, src_key_padding_mask=padding())[~padding()],
    "causal": lambda model, x: model(x, mask=causal(), is_causal=True),
    "causal, padded": lambda model, x: model(x, mask=causal() < 0.0, src_key_padding_mask=padding()),
}


# PyTorch warns once per process that nested tensors, which its own encoder makes, will change.
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", ["train", "eval", "eval, no grad"])
def test_an_encoder_gives_what_it_gave(call: str, way: str) -> None:
    theirs = encoder().train(way == "train")
    ours = copy.deepcopy(theirs)
    assert softscope.nn.replace(ours) == 2
    x = tokens()
    with torch.set_grad_enabled(way != "eval, no grad"):
        wanted, got = CALLS[call](theirs, x), CALLS[call](ours, x)
    assert_same(got, wanted, call)
    if way != "eval, no grad":
        grads, wanted_grads = ([*torch.autograd.grad(y.pow(2).sum(), list(model.parameters()))]
                               for y, model in ((got, ours), (wanted, theirs)))  # fmt: skip
        for got_grad, grad in zip(grads, wanted_grads, strict=True):
            assert_same(got_grad, grad, call, ulps=64.0)


@pytest.mark.parametrize("memory", [False, True])
def test_a_decoder_gives_what_it_gave(memory: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(SIZE, HEADS, 16, dropout=0.0, batch_first=True)
    ours = copy.deepcopy(theirs)
    assert softscope.nn.replace(ours) == 2
    arguments = {"tgt_mask": causal(), "tgt_is_causal": True}
    if memory:
        arguments["memory_key_padding_mask"] = padding()
    assert_same(
        ours(tokens(), tokens().flip(1), **arguments), theirs(tokens(), tokens().flip(1), **arguments), "decoder"
    )


@pytest.fixture
def fused_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fused calls PyTorch has made so far."""
    called = []
    for name in ("_transformer_encoder_layer_fwd", "_native_multi_head_attention"):
        fused = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *a, name=name, fused=fused: called.append(name) or fused(*a))
    return called


def test_the_fused_calls_are_not_taken(fused_calls: list[str]) -> None:
    layer, x = encoder().layers[0].eval(), tokens()
    with torch.no_grad():
        layer(x)
        layer.self_attn(x, x, x)
        assert fused_calls == ["_transformer_encoder_layer_fwd", "_native_multi_head_attention"]
        for options in ({}, *OPTIONS):
            swapped = copy.deepcopy(layer)
            swapped.self_attn = softscope.nn.MultiheadAttention.from_torch(layer.self_attn, **options)
            swapped(x)
            swapped.self_attn(x, x, x)
    assert len(fused_calls) == 2


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("swap", ["replace", "by hand", "built so"])
def test_an_option_speaks_in_eval_as_it_does_in_training(options: dict, swap: str) -> None:
    model = encoder(1)
    plain = model.eval()(tokens())
    if swap == "replace":
        softscope.nn.replace(model, **options)
    elif swap == "by hand":
        model.layers[0].self_attn = softscope.nn.MultiheadAttention.from_torch(model.layers[0].self_attn, **options)
    else:
        layer = copy.deepcopy(model.layers[0])
        softscope.nn.replace(layer, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it makes no nested tensors for such a layer
            model = nn.TransformerEncoder(layer, 1)
    trained = model.train()(tokens())
    with torch.no_grad():
        evaluated = model.eval()(tokens())
    assert_same(evaluated, trained, f"{options}")
    if options != {"temperature": True}:  # it starts at 1
        assert not torch.allclose(evaluated, plain, atol=1e-4)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_refused_with_what_to_do() -> None:
    model = encoder(1).eval()
    model.layers[0].self_attn = softscope.nn.MultiheadAttention.from_torch(model.layers[0].self_attn)
    with torch.no_grad(), pytest.raises(TypeError, match=r"must be a padded tensor.*use_nested_tensor to False"):
        model(tokens(), src_key_padding_mask=padding())
    model.use_nested_tensor = False
    with torch.no_grad():
        model(tokens(), src_key_padding_mask=padding())
