"""What the options do, against formulas written out in tensor operations, and by gradcheck."""

import math

import pytest
import torch
from torch import Tensor

import softscope as ss
import softscope.nn
from nn.same import BATCH, HEADS, SIZE, N, assert_same, generator

D = SIZE // HEADS
OPTIONS = {
    "rms": {"qk_norm": "rms"},
    "unit": {"qk_norm": "unit"},
    "softcap": {"softcap": 0.7},
    "temperature": {"temperature": True},
    "sink": {"sink": True},
    "alpha": {"alpha": 1.5},
    "sparsemax": {"alpha": 2.0},
    "scale": {"scale": 1.0},
    "scalable": {"scalable": 9.0},
    "softmax, all": {"qk_norm": "rms", "softcap": 2.0, "temperature": True, "sink": True, "scale": 0.8, "scalable": 4},
    "entmax, all": {"qk_norm": "unit", "softcap": 2.0, "temperature": True, "alpha": 1.3, "scale": 3.0},
}


def built(options: dict, **arguments) -> softscope.nn.MultiheadAttention:
    """A float64 layer with every parameter moved away from its initial value."""
    torch.manual_seed(0)
    layer = softscope.nn.MultiheadAttention(
        SIZE, HEADS, batch_first=True, dtype=torch.float64, **arguments, **options
    )  # fmt: skip
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64))
    return layer


def tokens() -> Tensor:
    return torch.randn(BATCH, N, SIZE, generator=generator(4), dtype=torch.float64)


def dense(layer: softscope.nn.MultiheadAttention, x: Tensor, visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Output, weights and logits, sharing nothing with the module but its parameters."""
    options = layer.options
    q, k, v = torch.einsum(
        "bnd,hed->hbne", x, layer.in_proj_weight.reshape(3, SIZE, SIZE)
    ) + layer.in_proj_bias.reshape(3, 1, 1, SIZE)
    q, k, v = (t.reshape(BATCH, N, HEADS, D).permute(0, 2, 1, 3) for t in (q, k, v))
    if options.qk_norm == "rms":
        eps = torch.finfo(torch.float64).eps
        q = q / (q.pow(2).mean(-1, keepdim=True) + eps).sqrt() * layer.q_gain
        k = k / (k.pow(2).mean(-1, keepdim=True) + eps).sqrt() * layer.k_gain
    if options.qk_norm == "unit":
        q, k = (t / t.pow(2).sum(-1, keepdim=True).sqrt() for t in (q, k))
    logits = torch.einsum("bhnd,bhmd->bhnm", q, k) * (options.scale or 1.0 / math.sqrt(D))
    if layer.log_temperature is not None:
        logits = logits / layer.log_temperature.exp()[None, :, None, None]
    if options.scalable:
        s = layer.length_gain / math.log(options.scalable)
        logits = logits * s[:, None, None] * visible.sum(-1).double().log()[:, None]
    if options.softcap:
        logits = options.softcap * torch.tanh(logits / options.softcap)
    logits = logits.masked_fill(~visible, -math.inf)
    if options.alpha != 1.0:
        weights = ss.entmax(logits, options.alpha)
    else:
        total = logits.exp().sum(-1, keepdim=True)
        weights = logits.exp() / (total if layer.sink is None else total + layer.sink.exp()[None, :, None, None])
    mixed = torch.einsum("bhnm,bhmd->bnhd", weights, v).reshape(BATCH, N, SIZE)
    return mixed @ layer.out_proj.weight.T + layer.out_proj.bias, weights, logits


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_formula(name: str, causal: bool) -> None:
    layer, x = built(OPTIONS[name]), tokens()
    visible = torch.ones(N, N, dtype=torch.bool)
    output, weights, logits = dense(layer, x, visible.tril() if causal else visible)
    arguments = {"is_causal": causal, "average_attn_weights": False, "return_partition": True}
    for need in (False, True):
        got, seen, partition = layer(x, x, x, need_weights=need, **arguments)
        assert_same(got, output, f"output, weights {need}")
        assert_same(seen, weights if need else None, "weights")
        assert partition.peak.shape == (BATCH, HEADS, N)
        if layer.options.alpha == 1.0:
            assert_same(partition.lse, torch.logsumexp(logits, -1), "the keys alone, without the sink")
        else:
            assert torch.equal(partition.size, (weights > 0.0).sum(-1))


@pytest.mark.parametrize(
    ("name", "need"), [*((name, False) for name in OPTIONS), ("softmax, all", True), ("alpha", True)]
)
def test_gradcheck_of_inputs_and_all_parameters(name: str, need: bool) -> None:
    layer = built(OPTIONS[name], add_bias_kv=True)
    x = tokens()[:1, :2].requires_grad_(True)
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def function(x: Tensor, *values: Tensor) -> Tensor | tuple[Tensor, ...]:
        found = torch.func.functional_call(
            layer, dict(zip(names, values, strict=True)), (x, x, x), {"is_causal": True, "need_weights": need}
        )
        return found if need else found[0]

    assert torch.autograd.gradcheck(function, (x, *parameters))


LEARNED = {"temperature": "log_temperature", "sink": "sink", "rms": "q_gain", "scalable": "length_gain"}


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_learned_learns(name: str) -> None:
    layer, x = built(OPTIONS[name]), tokens()
    layer(x, x, x, need_weights=False)[0].pow(2).sum().backward()
    assert bool((layer.get_parameter(LEARNED[name]).grad != 0.0).all())


def test_scalable_counts_the_keys_that_a_row_sees() -> None:
    """A padded key does not count, and a row of the stated length is unchanged."""
    plain, layer, x = built({}), built({"scalable": 3.0}), tokens()
    with torch.no_grad():
        layer.load_state_dict(plain.state_dict())
    padded = torch.arange(N) >= 3
    hidden = padded.expand(BATCH, N)
    assert_same(
        layer(x, x, x, key_padding_mask=hidden)[0], plain(x, x, x, key_padding_mask=hidden)[0], "rows of three keys"
    )
    additive = torch.where(padded, -math.inf, 0.0).to(x.dtype).expand(BATCH, N)
    assert_same(layer(x, x, x, key_padding_mask=additive)[0], plain(x, x, x, key_padding_mask=hidden)[0], "additive")
    assert (layer(x, x, x)[0] - plain(x, x, x)[0]).abs().max() > 1e-3


def test_where_options_start() -> None:
    layer = softscope.nn.MultiheadAttention(
        SIZE, HEADS, temperature=True, qk_norm="rms", sink=True, dtype=torch.float16
    )
    found = {name: parameter.tolist() for name, parameter in layer.named_parameters() if "proj" not in name}
    assert found == {"q_gain": [1.0] * D, "k_gain": [1.0] * D, "log_temperature": [0.0] * HEADS, "sink": [0.0] * HEADS}
    assert {p.dtype for p in layer.parameters()} == {torch.float16}
    with torch.no_grad():
        layer.sink.fill_(5.0)
    layer._reset_parameters()
    assert layer.sink.tolist() == [0.0] * HEADS


def test_options_draw_no_random_numbers() -> None:
    states = []
    for options in ({}, OPTIONS["softmax, all"]):
        torch.manual_seed(0)
        softscope.nn.MultiheadAttention(SIZE, HEADS, **options)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_a_layer_tells_its_options() -> None:
    layer = softscope.nn.MultiheadAttention(SIZE, HEADS, softcap=30.0, sink=True)
    assert "6, 2, softcap=30.0, sink=True\n" in repr(layer)
    assert "6, 2\n" in repr(softscope.nn.MultiheadAttention(SIZE, HEADS))


def test_without_a_batch_the_partition_has_none() -> None:
    layer, x = built({}), tokens()
    for need in (False, True):
        *_, one = layer(x[0], x[0], x[0], need_weights=need, return_partition=True)
        *_, all_of_them = layer(x, x, x, need_weights=need, return_partition=True)
        assert_same(one.entropy, all_of_them.entropy[0], "entropy")
