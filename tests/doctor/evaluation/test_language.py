"""A small causal language model trained on text from disk: healthy with 1/√d, starving without it."""

from __future__ import annotations

import pytest

from .models import language_model, letters, named, states, watched


def test_with_its_scale_there_is_no_finding() -> None:
    found = watched(language_model(), letters, steps=150)
    losses = [snapshot.loss for snapshot in found.view.history.snapshots]
    assert losses[-1] < 3.0 < losses[0], "it learns, or the test says nothing"
    assert named(found, "finding", "tip") == set()
    assert set(states(found)) == {"learning"}


@pytest.mark.parametrize(("scale", "most"), [(1.0, 3), (4.0, 4)])
def test_with_a_wrong_scale_starving_heads_are_named(scale: float, most: int) -> None:
    found = watched(language_model(scale), letters, steps=100)
    assert states(found).count("starving") >= most
    assert {"SS001", "SS005"} <= found.of("finding").keys()
    starving = {outcome.heads[0] for outcome in found.of("finding")["SS001"]}
    assert starving == {head for head, of in found.view.states.items() if of.state == "starving"}
    causes = [outcome.says.en for outcome in found.of("informative")["SS011"]]
    assert all("because of the scale" in cause for cause in causes)
