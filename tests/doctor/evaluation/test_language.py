"""A small causal language model trained on text from disk: healthy with 1/√d, stuck without it."""

from __future__ import annotations

import pytest
import torch

from softscope.doctor.diagnosis import diagnose
from softscope.doctor.evaluation.corpus import text_batch

from .models import LENGTH, language_model, letters, named, states, trained_language_model, watched


def test_with_its_scale_there_is_no_finding() -> None:
    _, found = trained_language_model()
    losses = [snapshot.loss for snapshot in found.view.history.snapshots]
    assert losses[-1] < 3.0 < losses[0], "it learns, or the test says nothing"
    assert named(found, "finding", "tip") == set()
    assert set(states(found)) == {"learning"}


@pytest.mark.parametrize(("scale", "most"), [(1.0, 3), (4.0, 4)])
def test_with_a_wrong_scale_heads_are_suspected_and_a_trial_decides(scale: float, most: int) -> None:
    tokens = text_batch(64, length=LENGTH, generator=torch.Generator().manual_seed(9)).tokens
    tried = watched(language_model(scale), letters, steps=100, tried_on=tokens)
    untried = diagnose(tried.view.history, trials={})
    assert states(untried).count("suspected") >= most
    assert {"SS005", "SS013"} <= untried.of("tip").keys()
    assert not untried.of("finding").keys() & {"SS001", "SS005"}
    assert "starving" in states(tried)
    assert {"SS001", "SS005"} <= tried.of("finding").keys()
    starving = {outcome.heads[0] for outcome in tried.of("finding")["SS001"]}
    assert starving == {head for head, of in tried.view.states.items() if of.state == "starving"}
    causes = [outcome.says.en for outcome in tried.of("informative")["SS011"]]
    assert all("because of the scale" in cause for cause in causes)
