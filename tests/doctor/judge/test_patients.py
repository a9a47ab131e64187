"""Models that are actually trained: the doctor must tell them apart."""

import dataclasses

import pytest

pytest.importorskip("torch")

from softscope.doctor import patients
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.patients import SCALED, UNSCALED


def judged(trained):
    diagnosis = diagnose(trained.history)
    (state,) = diagnosis.view.states.values()
    return state, set(diagnosis.of("finding")), diagnosis


def test_unscaled_starves_within_the_first_readings():
    trained = patients.train(UNSCALED, steps=15)
    state, codes, diagnosis = judged(trained)
    assert len(trained.history.snapshots) == 3
    assert state.state == "starving"
    assert {"SS001", "SS005"} <= codes
    assert [given.remedy for given in diagnosis.prescriptions] == ["scale"]
    (cause,) = diagnosis.of("informative")["SS011"]
    assert "the scale" in cause.says.en


def test_scaled_and_converged_is_right():
    trained = patients.train(SCALED, steps=80)
    state, codes, _ = judged(trained)
    assert trained.accuracy > 0.9
    assert state.blocked > 0.1, "it is as sharp as a stuck one, or the test says nothing"
    assert (state.state, codes) == ("right", set())


def test_it_is_learning_before():
    state, codes, _ = judged(patients.train(SCALED, steps=20))
    assert (state.state, codes) == ("learning", set())


@pytest.mark.parametrize(("seed", "wanted"), [(0, "right"), (1, "learning"), (2, "right")])
def test_right_with_30_percent_random_labels(seed, wanted):
    trained = patients.train(dataclasses.replace(SCALED, noise=0.3), steps=150, seed=seed)
    state, codes, _ = judged(trained)
    assert trained.accuracy > 0.9
    assert (state.blocked > 0.1) == (wanted == "right")  # noise keeps the second one from getting sharp
    assert (state.state, codes) == (wanted, set())


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
