"""The two models: how they start, what they see, and what they refuse."""

import pytest
import torch

from softscope.tasks import AttentionOptions, RecallModel, SmallTransformer, copy_batch, recall_batch

SEED = 5


def generator():
    return torch.Generator().manual_seed(SEED)


@pytest.mark.parametrize("options", [AttentionOptions(), AttentionOptions(softcap=5.0)])
def test_recall_answers_do_not_depend_on_the_order_of_the_pairs(options):
    model = RecallModel(d=16, vocabulary=8, heads=2, options=options)
    b = recall_batch(4, pairs=6, vocabulary=8, queries=3, generator=generator())
    order = torch.randperm(6, generator=generator())
    torch.testing.assert_close(model(*b.inputs), model(b.keys[:, order], b.values[:, order], b.query))


def test_recall_reads_values_by_key():
    """With all weight on the queried key, the answer is that of its value alone: the wiring is right."""
    model = RecallModel(d=32, vocabulary=8, options=AttentionOptions(scale=100.0))
    with torch.no_grad():
        model.key_table.weight.copy_(torch.nn.functional.normalize(model.key_table.weight, dim=-1))
        model.attention.w_q.weight.copy_(torch.eye(32))
        model.attention.w_k.weight.copy_(torch.eye(32))
    b = recall_batch(16, pairs=8, generator=generator())
    read = model.value_table.weight[b.clean_target] @ model.attention.w_v.weight.T
    wanted = model.readout(model.attention.w_o(read))
    torch.testing.assert_close(model(*b.inputs), wanted, rtol=1e-4, atol=1e-4)


def test_q_and_k_start_with_unit_variance_and_unscaled_logits_with_sqrt_d():
    model = RecallModel(d=256, vocabulary=64)
    q = model.attention.w_q(model.key_table.weight)
    k = model.attention.w_k(model.key_table.weight)
    assert q.var().item() == pytest.approx(1, abs=0.1)
    assert k.var().item() == pytest.approx(1, abs=0.1)
    assert (q @ k.T).std().item() == pytest.approx(16, rel=0.1)


def test_a_transformer_position_never_sees_a_later_token():
    model = SmallTransformer(17, length=32, d=32, heads=2, layers=2)
    tokens = copy_batch(2, generator=generator()).tokens
    before = model(tokens)
    for i in (1, 16, 31):
        changed = tokens.clone()
        changed[:, i] = (changed[:, i] + 1) % 17
        after = model(changed)
        assert torch.equal(after[:, :i], before[:, :i])
        assert not torch.equal(after[:, i], before[:, i])


def test_a_transformer_knows_positions():
    model = SmallTransformer(3, length=4, d=16, heads=1, layers=1)
    logits = model(torch.zeros(1, 4, dtype=torch.long))
    assert not torch.allclose(logits[0, 0], logits[0, 3])


def test_a_shorter_sequence_is_welcome_and_a_longer_one_is_refused():
    model = SmallTransformer(3, length=4, d=16, heads=1, layers=1)
    assert model(torch.zeros(2, 1, dtype=torch.long)).shape == (2, 1, 3)
    with pytest.raises(ValueError, match=r"tokens must have at most length=4 positions, but got 5; .*larger length"):
        model(torch.zeros(2, 5, dtype=torch.long))


def test_options_reach_every_layer():
    options = AttentionOptions(scale=1.0, qk_norm="rms")
    model = SmallTransformer(3, length=4, d=16, heads=2, layers=3, options=options)
    assert [block.attention.options for block in model.blocks] == [options] * 3
    assert [block.attention.factor for block in model.blocks] == [1.0] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: RecallModel(d=8, vocabulary=4, seed=seed),
        lambda seed: SmallTransformer(5, length=4, d=8, seed=seed),
    ],
)
def test_the_seed_decides_the_weights(make):
    one, same, other = (torch.nn.utils.parameters_to_vector(make(s).parameters()) for s in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert bool(one.isfinite().all())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecallModel(d=10, heads=4), "heads must divide d, but got heads=4 and d=10; .* is 12"),
        (lambda: RecallModel(vocabulary=0), "vocabulary must be at least 1, but got 0;"),
        (lambda: SmallTransformer(4, length=0), "length must be at least 1, but got 0;"),
        (lambda: SmallTransformer(4, length=4, layers=0), "layers must be at least 1, but got 0;"),
        (lambda: SmallTransformer(4, length=4, d=0), "d must be at least 1, but got 0;"),
    ],
)
def test_bad_sizes_are_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tokens_outside_the_vocabulary_are_refused_in_words():
    b = recall_batch(4, pairs=16, generator=generator())
    with pytest.raises(ValueError, match=r"keys must be tokens in \[0, 8\), but they range from 0 to 15; build"):
        RecallModel(d=8, vocabulary=8)(*b.inputs)
    without_delimiter = SmallTransformer(16, length=32, d=8)
    with pytest.raises(ValueError, match=r"tokens must be tokens in \[0, 16\), .* to 16; .*delimiter"):
        without_delimiter(copy_batch(1, generator=generator()).tokens)
    with pytest.raises(ValueError, match=r"range from -1 to 0"):
        without_delimiter(torch.tensor([[0, -1]]))
