"""Each option changes the attention layer as its formula says, checked with plain tensor operations in float64.

The initial weights and temperatures are float32 numbers, so agreement ends near 1e-7.
"""

import math

import pytest
import torch
from torch.nn import functional

import softscope
from softscope.tasks import Attention, AttentionOptions

D, HEADS, SIZE = 12, 3, 4


def layer(**options):
    generator = torch.Generator().manual_seed(1)
    return Attention(D, heads=HEADS, options=AttentionOptions(**options), generator=generator).double()


def inputs():
    generator = torch.Generator().manual_seed(2)
    return (torch.randn(2, n, D, generator=generator, dtype=torch.float64) for n in (5, 7, 7))


def expected(layer, logits_of, weights_of=lambda logits: logits.softmax(-1)):
    """W_O · weights · v, head by head, with logits and weights defined by the caller."""
    query, key, value = inputs()
    heads = []
    for h in range(HEADS):
        rows = slice(h * SIZE, (h + 1) * SIZE)
        q, k = query @ layer.w_q.weight[rows].T, key @ layer.w_k.weight[rows].T
        heads.append(weights_of(logits_of(q, k)) @ (value @ layer.w_v.weight[rows].T))
    return torch.cat(heads, -1) @ layer.w_o.weight.T


def dot(q, k):
    return q @ k.mT


def unit(x):
    return x / x.square().sum(-1, keepdim=True).sqrt()


def rms(x):
    return x / x.square().mean(-1, keepdim=True).sqrt()


def entmax_15(logits):
    """alpha = 1.5 by bisection for tau: weights = max(logits/2 − tau, 0)²."""
    half = logits / 2
    low, high = half.amax(-1, keepdim=True) - 1, half.amax(-1, keepdim=True)
    for _ in range(80):
        tau = (low + high) / 2
        over = ((half - tau).clamp(min=0) ** 2).sum(-1, keepdim=True) > 1
        low, high = torch.where(over, tau, low), torch.where(over, high, tau)
    return (half - tau).clamp(min=0) ** 2


def with_sink(logits, sink=0.5):
    e = logits.exp()
    return e / (e.sum(-1, keepdim=True) + math.exp(sink))


CASES = [
    ({}, lambda q, k: dot(q, k) / 2, None),  # 1/√SIZE
    ({"scale": 1.0}, dot, None),
    ({"scale": 0.3}, lambda q, k: 0.3 * dot(q, k), None),
    ({"scale": 1.0, "temperature": 5.0}, lambda q, k: dot(q, k) / 5, None),
    ({"scale": 1.0, "temperature": 5.0, "learn_temperature": True}, lambda q, k: dot(q, k) / 5, None),
    ({"qk_norm": "rms"}, lambda q, k: dot(rms(q), rms(k)) / 2, None),
    ({"qk_norm": "unit", "scale": 3.0}, lambda q, k: 3 * dot(unit(q), unit(k)), None),
    ({"softcap": 1.5}, lambda q, k: 1.5 * torch.tanh(dot(q, k) / 2 / 1.5), None),
    ({"softcap": 1.5, "scale": 1.0, "temperature": 2.0}, lambda q, k: 1.5 * torch.tanh(dot(q, k) / 2 / 1.5), None),
    ({"sink": 0.5}, lambda q, k: dot(q, k) / 2, with_sink),
    ({"alpha": 1.5}, lambda q, k: dot(q, k) / 2, entmax_15),
    ({"scalable": 50}, lambda q, k: dot(q, k) / 2 * math.log(k.shape[-2]) / math.log(50), None),
]  # fmt: skip


@pytest.mark.parametrize(("options", "logits_of", "weights_of"), CASES, ids=[str(case[0]) for case in CASES])
def test_the_layer_is_its_formula(options, logits_of, weights_of):
    one = layer(**options)
    wanted = expected(one, logits_of, weights_of) if weights_of else expected(one, logits_of)
    torch.testing.assert_close(one(*inputs()), wanted, rtol=1e-6, atol=1e-7)


def test_every_formula_differs_from_the_plain_one():
    """Otherwise the test above could pass with an option that does nothing."""
    plain = layer()(*inputs())
    for options, _, _ in CASES[1:]:
        assert (layer(**options)(*inputs()) - plain).abs().max() > 1e-3, options


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"sink": 0.0}, {"alpha": 1.5}])
def test_causal_rows_do_not_see_later_keys(options):
    one = layer(**options)
    x = next(inputs())
    before = one(x, x, x, causal=True)
    x[:, 3:] += 1
    after = one(x, x, x, causal=True)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])


def test_init_gain_multiplies_w_q_and_w_k_alone():
    one, other = layer(), layer(init_gain=0.25)
    torch.testing.assert_close(other.w_q.weight, one.w_q.weight / 4)
    torch.testing.assert_close(other.w_k.weight, one.w_k.weight / 4)
    assert torch.equal(other.w_v.weight, one.w_v.weight)
    assert torch.equal(other.w_o.weight, one.w_o.weight)


def test_learned_parameters_are_there_when_asked_for_and_receive_gradients():
    assert {name for name, _ in layer().named_parameters()} == {f"w_{x}.weight" for x in "qkvo"}
    for options, names in [
        ({"learn_temperature": True}, {"log_temperature"}),
        ({"qk_norm": "rms"}, {"q_gain", "k_gain"}),
        ({"sink": 0.0}, {"sink"}),
        ({"sink": 0.0, "learn_temperature": True, "softcap": 3.0}, {"sink", "log_temperature"}),
    ]:
        one = layer(**options)
        one(*inputs()).square().sum().backward()
        parameters = dict(one.named_parameters())
        assert names == parameters.keys() - {f"w_{x}.weight" for x in "qkvo"}
        for name in names:
            assert parameters[name].grad.abs().min() > 0, (options, name)


def test_the_plain_path_is_seen_by_whoever_watches_pytorch(monkeypatch):
    seen = []
    original = functional.scaled_dot_product_attention

    def watched(*args, **kwargs):
        seen.append(kwargs["scale"])
        return original(*args, **kwargs)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", watched)
    layer()(*inputs())
    layer(scale=1.0)(*inputs())
    layer(scale=1.0, temperature=4.0)(*inputs())
    layer(qk_norm="rms", learn_temperature=True, temperature=4.0)(*inputs())
    assert seen == [0.5, 1.0, 0.25, 0.5]


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"sink": 0.0}, {"alpha": 1.5}])
def test_what_pytorch_cannot_do_goes_through_softscope(monkeypatch, options):
    seen = []
    original = softscope.attention

    def watched(*args, **kwargs):
        seen.append(kwargs)
        return original(*args, **kwargs)

    monkeypatch.setattr(softscope, "attention", watched)
    layer(**options)(*inputs())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": "none"}, TypeError, ["scale", '"sqrt" or a positive number', "'none'"]),
        ({"scale": 0}, ValueError, ["scale", "positive", "0", "plain dot product"]),
        ({"scale": math.inf}, ValueError, ["scale", "positive", "inf"]),
        ({"temperature": 0.0}, ValueError, ["temperature", "positive", "0.0", "flattens"]),
        ({"temperature": -1.0}, ValueError, ["temperature", "positive", "-1.0"]),
        ({"qk_norm": True}, ValueError, ["qk_norm", '"rms" or "unit"', "True"]),
        ({"softcap": 0.0}, ValueError, ["softcap", "positive", "0.0", "None"]),
        ({"sink": math.nan}, ValueError, ["sink", "nan"]),
        ({"sink": -math.inf}, ValueError, ["sink", "finite", "-inf", "None"]),
        ({"alpha": 0.5}, ValueError, ["alpha", ">= 1", "0.5", "sparsemax"]),
        ({"alpha": 1.5, "sink": 0.0}, ValueError, ["sink", "alpha = 1", "alpha=1.5", "leave one"]),
        ({"init_gain": 0.0}, ValueError, ["init_gain", "positive", "0.0", "unit variance"]),
    ],
)
def test_bad_options_are_refused_in_words(options, error, words):
    with pytest.raises(error) as caught:
        AttentionOptions(**options)
    for word in words:
        assert word in str(caught.value)


def test_options_must_be_options():
    with pytest.raises(TypeError, match="options must be AttentionOptions, but got dict; pass "):
        Attention(16, heads=2, options={"scale": 1.0}, generator=torch.Generator())


def test_heads_must_divide_d():
    with pytest.raises(ValueError, match=r"heads must divide d, but got heads=3 and d=16; .* is 18"):
        Attention(16, heads=3, options=AttentionOptions(), generator=torch.Generator())
