"""Training: the scaled model learns, the unscaled one gets stuck, and a run is exactly reproducible."""

import math
from functools import partial

import pytest
import torch

from softscope.tasks import (
    AttentionOptions,
    RecallModel,
    SmallTransformer,
    copy_batch,
    recall_batch,
    train,
)


def recall(generator, **kwargs):
    return recall_batch(8, generator=generator, **kwargs)


def small(options=None, seed=0):
    return RecallModel(d=128, options=options, seed=seed)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_with_the_scale_recall_is_learned_and_without_it_the_model_is_stuck(seed, noise):
    batches = partial(recall, noise=noise)
    scaled = train(small(seed=seed), batches, steps=80, seed=seed)
    unscaled = train(small(AttentionOptions(scale=1.0), seed), batches, steps=80, seed=seed)
    assert scaled.recent_accuracy() > 0.95
    assert unscaled.recent_accuracy() < 0.5


def test_a_temperature_of_sqrt_d_gives_the_unscaled_model_its_scale_back():
    remedied = AttentionOptions(scale=1.0, temperature=math.sqrt(128))
    a, b = train(small(), recall, steps=3), train(small(remedied), recall, steps=3)
    assert a.loss == pytest.approx(b.loss, rel=1e-5)


def test_copying_is_learned():
    model = SmallTransformer(9, length=16, d=32, heads=2, layers=1)
    history = train(model, lambda g: copy_batch(16, length=8, vocabulary=8, generator=g), steps=200, learning_rate=5e-3)
    assert history.accuracy[0] < 0.5
    assert history.recent_accuracy() > 0.95


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)])
def test_a_run_repeats_itself_exactly(optimizer):
    runs = [train(small(), recall, steps=4, optimizer=optimizer, seed=3) for _ in range(2)]
    other = train(small(), recall, steps=4, optimizer=optimizer, seed=4)
    assert runs[0] == runs[1]
    assert runs[0].loss != other.loss
    assert len(runs[0].loss) == len(runs[0].accuracy) == 4


def test_the_first_loss_is_that_of_the_untrained_model():
    model = small()
    b = recall(torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(*b.inputs)
    picked = logits.log_softmax(-1).gather(-1, b.target[..., None])
    history = train(model, recall, steps=1)
    assert history.loss[0] == pytest.approx(-picked.mean().item(), rel=1e-5)
    assert history.accuracy[0] == pytest.approx((logits.argmax(-1) == b.clean_target).float().mean().item())


def test_accuracy_is_counted_against_the_labels_before_noise():
    model = small()
    train(model, recall, steps=60)
    history = train(model, partial(recall, noise=1.0), steps=1, seed=9)
    assert history.accuracy[0] > 0.95
    assert history.loss[0] > 2


def test_callbacks_see_every_step_its_gradients_and_the_model_before_its_update():
    model = small()
    start = model.readout.weight.detach().clone()
    seen, done = [], []

    def on_step(step, loss, seen_model):
        assert seen_model is model
        assert model.readout.weight.grad.abs().max() > 0
        if step == 0:
            assert torch.equal(model.readout.weight, start)
        seen.append((step, loss))

    history = train(model, recall, steps=3, on_step=on_step, progress=lambda *x: done.append(x))
    assert seen == list(enumerate(history.loss))
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert not torch.equal(model.readout.weight, start)


def test_watching_changes_nothing():
    bare = train(small(), recall, steps=3)
    assert train(small(), recall, steps=3, on_step=lambda *_: None, progress=lambda *_: None) == bare


def test_a_loss_that_is_not_finite_stops_the_run_and_is_reported():
    model = small()
    done = []

    def spoil(step, _loss, seen_model):
        if step == 1:
            with torch.no_grad():
                seen_model.readout.weight.grad.fill_(math.nan)

    history = train(model, recall, steps=10, on_step=spoil, progress=lambda *x: done.append(x))
    assert history.stopped_at == 2
    assert math.isnan(history.loss[2])
    assert len(history.loss) == len(history.accuracy) == 3
    assert done == [(1, 10), (2, 10)]


def test_a_run_that_goes_well_says_so():
    assert train(small(), recall, steps=1).stopped_at is None


def test_a_learning_rate_far_too_high_is_reported_and_does_not_crash():
    history = train(small(), recall, steps=50, optimizer="sgd", learning_rate=1e6)
    assert history.stopped_at is not None


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"steps": 0}, ValueError, ["steps", "at least 1", "0"]),
        ({"steps": 1, "learning_rate": 0.0}, ValueError, ["learning_rate", "positive", "0.0", "1e-3"]),
        ({"steps": 1, "optimizer": "lion"}, ValueError, ["optimizer", '"adam"', "'lion'", "function"]),
    ],
)
def test_bad_input_is_refused_in_words(kwargs, error, words):
    with pytest.raises(error) as caught:
        train(small(), recall, **kwargs)
    for word in words:
        assert word in str(caught.value)
