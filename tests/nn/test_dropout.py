"""Dropout in training: applied to the weights, with the right mean, reproducible by seed, and off in eval."""

import pytest
import torch

import softscope.nn
from nn.same import BATCH, HEADS, SIZE, N, assert_same, both, generator

P = 0.3


def tokens(n: int = N) -> torch.Tensor:
    return torch.randn(n, BATCH, SIZE, generator=generator(10), dtype=torch.float64)


def seeded(module, x, **arguments):
    torch.manual_seed(11)
    return module(x, x, x, **arguments)


@pytest.mark.parametrize("need", [False, True])
def test_under_one_seed_pytorch_drops_the_same(need: bool) -> None:
    theirs, ours = both(dropout=P, dtype=torch.float64)
    for got, wanted in zip(seeded(ours, tokens(), need_weights=need), seeded(theirs, tokens(), need_weights=need),
                           strict=True):  # fmt: skip
        assert_same(got, wanted, "dropout")


def test_the_same_seed_drops_the_same_and_another_does_not() -> None:
    _, ours = both(dropout=P, dtype=torch.float64)
    x = tokens()
    first = seeded(ours, x)[0]
    assert torch.equal(seeded(ours, x)[0], first)
    assert not torch.equal(ours(x, x, x)[0], first)


def test_none_in_eval() -> None:
    _, ours = both(dropout=P, dtype=torch.float64)
    ours.eval()
    x = tokens()
    for need in (False, True):
        before = torch.get_rng_state()
        assert_same(ours(x, x, x, need_weights=need)[0], ours(x, x, x)[0], "eval")
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("options", [{}, {"sink": True}, {"alpha": 1.5}])
def test_how_many_weights_it_drops_and_what_becomes_of_the_others(options: dict) -> None:
    layer = softscope.nn.MultiheadAttention(SIZE, HEADS, dropout=P, dtype=torch.float64, **options)
    x = 0.1 * tokens(64)  # small, so entmax keeps every key
    torch.manual_seed(0)
    _, dropped = layer(x, x, x, average_attn_weights=False)
    _, whole = layer.eval()(x, x, x, average_attn_weights=False)
    assert bool((whole > 0.0).all())
    kept = dropped != 0.0
    count = kept.numel()
    assert count == BATCH * HEADS * 64 * 64
    # Four standard deviations of a binomial share.
    assert abs(float(kept.double().mean()) - (1 - P)) < 4 * (P * (1 - P) / count) ** 0.5
    assert_same(dropped[kept], (whole / (1 - P))[kept], "what is kept")


def test_the_partition_is_that_of_the_weights_before_dropout() -> None:
    _, ours = both(dropout=P, dtype=torch.float64)
    x = tokens()
    *_, trained = ours(x, x, x, return_partition=True)
    *_, evaluated = ours.eval()(x, x, x, need_weights=False, return_partition=True)
    assert_same(trained.lse, evaluated.lse, "lse")
