"""Copying: after the delimiter, the next token is always the one `length` places back."""

import pytest
import torch

from softscope.tasks import IGNORED, copy_batch


def made(seed=0, **kwargs):
    return copy_batch(8, generator=torch.Generator().manual_seed(seed), **kwargs)


@pytest.mark.parametrize(("length", "vocabulary"), [(16, 16), (1, 3), (5, 40)])
def test_targets_are_the_sequence_again(length, vocabulary):
    b = made(length=length, vocabulary=vocabulary)
    assert b.tokens.shape == b.target.shape == (8, 2 * length)
    for tokens, target in zip(b.tokens.tolist(), b.target.tolist(), strict=True):
        sequence = tokens[:length]
        assert all(0 <= token < vocabulary for token in sequence)
        assert tokens == [*sequence, vocabulary, *sequence[:-1]]
        assert target == [IGNORED] * length + sequence


def test_a_target_is_the_next_token():
    b = made()
    assert torch.equal(b.target[:, 16:-1], b.tokens[:, 17:])


def test_the_generator_decides_everything():
    assert torch.equal(made(3).tokens, made(3).tokens)
    assert not torch.equal(made(3).tokens, made(4).tokens)


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match=r"generator must be a torch.Generator, but got int; pass "):
        copy_batch(2, generator=0)


@pytest.mark.parametrize("name", ["length", "vocabulary"])
def test_bad_input_is_refused_in_words(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, but got 0; "):
        made(**{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be an integer, but got '3'; "):
        made(**{name: "3"})
