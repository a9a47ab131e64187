"""A prescription is followed on a copy, trained on, and compared with no treatment and with the heads drawn anew."""

from __future__ import annotations

from typing import Any

import torch

from softscope import tasks
from softscope.doctor import remedies
from softscope.doctor.evaluation import subjects, treated
from softscope.doctor.evaluation.truth import Change


class Given:
    """A prescription that gives the only head of a recall model a temperature."""

    remedy = "temperature"

    def __init__(self, temperature: float | None) -> None:
        self.temperature = temperature

    def apply(self, model: Any) -> remedies.Applied:
        if self.temperature is None:
            raise remedies.NotSupportedError("nothing to change")
        return remedies.temperature(model, {"model.attention": dict.fromkeys(range(4), self.temperature)})


def test_what_helps_helped_and_what_hurts_hurt() -> None:
    torch.set_num_threads(1)
    subject = subjects.RECALL_WIDE
    run = subject.run(0, 1e-3, tasks.AttentionOptions(scale=4.0))
    before = {name: x.clone() for name, x in run.model.state_dict().items()}
    batch = subject.batch(32, torch.Generator().manual_seed(1), "held out")
    found, advice = treated.outcomes(run, subject, [Given(64.0), Given(None), Given(1e-3)], batch)
    assert advice == 1
    good, bad = found
    assert (good.remedy, good.heads) == ("temperature", 4)
    assert good.helped
    assert good.untreated.falls
    assert good.drawn.falls, "drawing heads anew does not help against a wrong scale"
    assert not bad.helped
    assert all(torch.equal(x, before[name]) for name, x in run.model.state_dict().items())


def test_what_counts_as_help() -> None:
    down, up, none = Change(-1.0, 0.1), Change(1.0, 0.1), Change(-1.0, 1.0)

    def helped(at_once: Change, untreated: Change) -> bool:
        return treated.Outcome("", 1, at_once, untreated, none).helped

    assert helped(up, down)
    assert helped(down, none)
    assert not helped(none, none)
    assert not helped(down, up)
