"""Associative recall: the target is the value of the queried key, and noise goes where it should."""

import pytest
import torch

from softscope.tasks import recall_batch


def made(seed=0, batch=32, **kwargs):
    return recall_batch(batch, generator=torch.Generator().manual_seed(seed), **kwargs)


@pytest.mark.parametrize(("pairs", "vocabulary", "queries"), [(16, None, 16), (4, 50, 1), (1, 1, 3), (5, 5, 9)])
def test_the_clean_target_is_the_value_of_the_queried_key(pairs, vocabulary, queries):
    b = made(pairs=pairs, vocabulary=vocabulary, queries=queries)
    assert b.keys.shape == b.values.shape == (32, pairs)
    assert b.query.shape == b.target.shape == b.clean_target.shape == (32, queries)
    for keys, values, query, clean in zip(b.keys, b.values, b.query, b.clean_target, strict=True):
        table = dict(zip(keys.tolist(), values.tolist(), strict=True))
        assert len(table) == pairs, "a key came twice"
        assert [table[key] for key in query.tolist()] == clean.tolist()


def test_tokens_cover_the_vocabulary_and_nothing_else():
    b = made(batch=500, pairs=4, vocabulary=10)
    for tokens in (b.keys, b.values, b.query, b.target):
        assert set(tokens.unique().tolist()) == set(range(10))


def test_every_pair_is_asked_equally_often():
    b = made(batch=2000, pairs=4, queries=4)
    position = (b.query[:, :, None] == b.keys[:, None, :]).flatten(0, 1).float().mean(0)
    assert position.sub(0.25).abs().max() < 5 * (0.25 * 0.75 / 8000) ** 0.5


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_replaces_that_share_of_the_labels(noise):
    b = made(batch=1000, noise=noise)
    wrong = (b.target != b.clean_target).float().mean().item()
    expected = noise * (1 - 1 / 16)  # a random label is right in 1 of 16 cases
    assert abs(wrong - expected) <= 5 * (expected * (1 - expected) / 16000) ** 0.5


def test_noise_changes_the_labels_alone():
    clean, noisy = made(noise=0.0), made(noise=0.5)
    assert torch.equal(clean.target, clean.clean_target)
    for name in ("keys", "values", "query", "clean_target"):
        assert torch.equal(getattr(clean, name), getattr(noisy, name)), name


def test_the_generator_decides_everything():
    generator = torch.Generator().manual_seed(7)
    first, second = (recall_batch(4, noise=0.5, generator=generator) for _ in range(2))
    again = made(seed=7, batch=4, noise=0.5)
    for name in ("keys", "values", "query", "target"):
        assert torch.equal(getattr(first, name), getattr(again, name)), name
        assert not torch.equal(getattr(first, name), getattr(second, name)), name


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match=r"generator must be a torch.Generator, but got int; pass "):
        recall_batch(2, generator=0)


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"pairs": 8, "vocabulary": 4}, ValueError, ["at most vocabulary", "pairs=8", "vocabulary=4", "show fewer"]),
        ({"noise": 1.5}, ValueError, ["noise", "[0, 1]", "1.5", "30%"]),
        ({"noise": -0.1}, ValueError, ["noise", "[0, 1]", "-0.1"]),
        ({"noise": float("nan")}, ValueError, ["noise", "[0, 1]", "nan"]),
        ({"noise": "some"}, TypeError, ["noise", "[0, 1]", "some"]),
        ({"pairs": 0}, ValueError, ["pairs", "at least 1", "0"]),
        ({"queries": 0}, ValueError, ["queries", "at least 1"]),
        ({"batch": 2.5}, TypeError, ["batch", "integer", "2.5"]),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(kwargs, error, words):
    with pytest.raises(error) as caught:
        made(**kwargs)
    for word in words:
        assert word in str(caught.value)
