"""Models that are actually trained: the doctor must tell them apart, and what is said of their future is measured."""

import dataclasses
from functools import partial

import pytest

pytest.importorskip("torch")

from softscope.doctor import patients
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.patients import HEALTHY, KEYS, OVERSIZED, PAIRS, UNSCALED
from softscope.doctor.treat import remedies
from softscope.doctor.treat.treatment import REST

SEEDS = (0, 1, 2)


def judged(trained):
    diagnosis = diagnose(trained.history, trials=patients.trials(trained))
    (state,) = diagnosis.view.states.values()
    return state, set(diagnosis.of("finding")), diagnosis


def with_keys(patient, keys):
    return dataclasses.replace(patient, keys=keys)


def clip(batch, model):
    """Bring q and k back to their size; what is prescribed is tested elsewhere."""
    with remedies.largest_logits(model) as found:
        model(*batch)
    remedies.qk_clip(model, {"attention": list(found["attention"])}, tau=REST)


@pytest.mark.parametrize("keys", [PAIRS, KEYS])
@pytest.mark.parametrize("seed", SEEDS)
def test_oversized_starves_within_the_first_readings(seed, keys):
    trained = patients.train(with_keys(OVERSIZED, keys), steps=30, every=10, seed=seed)
    state, codes, diagnosis = judged(trained)
    assert len(trained.history.snapshots) == 3
    assert (state.state, state.blocked) == ("starving", 1.0)
    assert "SS001" in codes
    assert any(given.treatment is not None for given in diagnosis.prescriptions)
    (cause,) = diagnosis.of("informative")["SS011"]
    assert "the norms of q and k" in cause.says.en


@pytest.mark.parametrize("keys", [PAIRS, KEYS])
@pytest.mark.parametrize("seed", SEEDS)
def test_oversized_does_not_recover_for_a_while_and_treated_it_does(seed, keys):
    trained = patients.train(with_keys(OVERSIZED, keys), steps=30, seed=seed)
    batch = patients.held_out(trained)
    found = patients.prognosis(trained, partial(clip, batch), steps=90)
    assert found.course == "stuck"
    assert patients.answers(found.untreated.model, batch) < 0.3
    assert patients.answers(found.treated.model, batch) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("keys", [16, 32, 64, 128])
@pytest.mark.parametrize("seed", SEEDS)
def test_oversized_does_not_recover_for_long_whatever_the_vocabulary(seed, keys):
    """What the demo says of it, and that it does not hang on how many keys there are in all."""
    trained = patients.train(with_keys(OVERSIZED, keys), seed=seed)
    batch = patients.held_out(trained)
    found = patients.prognosis(trained, steps=2 * patients.MORE)
    assert patients.answers(found.untreated.model, batch) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_how_stuck_a_model_without_the_scale_gets_depends_on_the_vocabulary(seed):
    few, many = (patients.train(with_keys(UNSCALED, keys), seed=seed) for keys in (PAIRS, KEYS))
    after = [patients.prognosis(trained, steps=patients.MORE).untreated.model for trained in (few, many)]
    assert patients.answers(after[0], patients.held_out(few)) < 0.3
    assert patients.answers(after[1], patients.held_out(many)) > 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_scale_and_with_many_keys_it_learns_and_is_not_called_starving(seed):
    trained = patients.train(UNSCALED, seed=seed)
    state, codes, _ = judged(trained)
    assert trained.accuracy > 0.7
    assert state.blocked > 0.5, "it is as sharp as a stuck one, or the test says nothing"
    assert state.state in ("right", "useful")
    assert "SS001" not in codes


def test_without_the_scale_and_with_the_same_keys_always_it_starves():
    trained = patients.train(with_keys(UNSCALED, PAIRS), steps=30)
    state, codes, diagnosis = judged(trained)
    assert state.state == "starving"
    assert {"SS001", "SS005"} <= codes
    assert diagnosis.prescriptions[0].remedy == "scale"
    (cause,) = diagnosis.of("informative")["SS011"]
    assert "the scale" in cause.says.en


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_and_converged_is_right(seed):
    trained = patients.train(HEALTHY, seed=seed)
    state, codes, _ = judged(trained)
    assert trained.accuracy > 0.9
    assert state.blocked > 0.1, "it is as sharp as a stuck one, or the test says nothing"
    assert (state.state, codes) == ("right", set())


def test_it_is_learning_before():
    state, codes, _ = judged(patients.train(HEALTHY, steps=20))
    assert (state.state, codes) == ("learning", set())


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_with_30_percent_random_labels(seed):
    trained = patients.train(dataclasses.replace(HEALTHY, noise=0.3), seed=seed)
    state, codes, _ = judged(trained)
    assert trained.accuracy > 0.9
    assert (state.state in ("right", "useful", "learning"), codes) == (True, set())


def test_answers_are_what_the_task_says():
    import torch

    from softscope import tasks

    made = tasks.recall_batch(4, pairs=8, vocabulary=32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(patients._target(made.inputs), made.clean_target)


def test_watching_changes_nothing():
    import torch

    import softscope
    from softscope import tasks

    def weights(every):
        model = tasks.RecallModel(32, vocabulary=8)
        batches = lambda g: tasks.recall_batch(4, pairs=8, generator=g)  # noqa: E731
        if every is None:
            tasks.train(model, batches, steps=5)
        else:
            with softscope.probe(model, every=every, max_rows=None) as scope:
                tasks.train(model, batches, steps=5, on_step=lambda _, loss, __: scope.step(loss=loss))
                assert len(scope.history().snapshots) == 5
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    assert torch.equal(weights(None), weights(1))
