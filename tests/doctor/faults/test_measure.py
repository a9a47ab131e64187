"""Harm, lead and shares, on results made by hand."""

from __future__ import annotations

import dataclasses
import re

import pytest

from softscope.doctor.faults import remedies
from softscope.doctor.faults.catalogue import CHINESE, FAULTS
from softscope.doctor.faults.measure import alarms, band, lead, right, wrong
from softscope.doctor.faults.runs import STEPS, Case, Result, Said
from softscope.doctor.faults.table import table

HEALTHY = [
    Result(Case("BERT", seed), (), tuple(3.0 - step / 100 + away for step in range(STEPS)), 1.0 + away, ())
    for seed, away in enumerate((-0.1, 0.0, 0.1))
]
NAMED = Said("SS014", "finding", "a", 4)


def spoiled(loss: float, since: int | None, said: tuple[Said, ...] = (NAMED,)) -> Result:
    """A run whose training loss stops to fall at a step, or never."""
    losses = tuple(
        3.0 - min(step, STEPS if since is None else since) / 100 for step in range(STEPS)
    )  # fmt: skip
    return Result(Case("GPT-2", 0, "no causal mask"), ("a",), losses, loss, said)


def test_harm_is_three_standard_deviations_above_healthy_runs() -> None:
    of = band(HEALTHY)
    assert of.loss == pytest.approx(1.0)
    assert of.spread == pytest.approx(0.1)
    assert of.harmed(spoiled(1.31, None))
    assert not of.harmed(spoiled(1.29, None))
    assert of.harmed(spoiled(float("inf"), None))
    assert of.harmed(spoiled(float("nan"), None))


def test_the_lead_is_from_the_name_to_the_loss() -> None:
    of = band(HEALTHY)
    steps, shown = lead(spoiled(2.0, 50), of)  # type: ignore[misc]
    assert shown
    assert 50 + 30 - 4 <= steps <= 50 + 30 + 10 - 4  # 0.3 above takes thirty steps, and it is smoothed over ten
    assert lead(spoiled(2.0, None), of) == (STEPS - 4, False)
    assert lead(spoiled(2.0, 50, ()), of) is None


def test_tips_that_say_they_are_no_alarm_are_none() -> None:
    said = tuple(
        Said(code, kind, "a", 0) for code, kind in (("SS013", "tip"), ("SS006", "tip"), ("SS002", "informative"))
    )
    result = spoiled(1.0, None, (*said, NAMED))
    assert [x.code for x in alarms(result)] == ["SS006", "SS014"]
    assert [x.code for x in right(result)] == ["SS014"]
    assert [x.code for x in wrong(result)] == ["SS006"]


def test_the_table_counts_each_run_once() -> None:
    of = band(HEALTHY)
    text = table([*HEALTHY, spoiled(2.0, 50), spoiled(1.0, None, (Said("SS006", "tip", "a", 0),))], lambda _: of)
    assert "| no causal mask | SS014 | 2 | 1 | 1 | 1 | 0 |" in text
    assert "Healthy runs with an alarm: 0 of 3" in text
    assert "Unharmed runs with an alarm of another cause: 1 of 1" in text


def test_both_languages_have_the_same_figures() -> None:
    of = band(HEALTHY)
    runs = [*HEALTHY, spoiled(2.0, 50), spoiled(2.0, None)]
    for make in (lambda lang: table(runs, lambda _: of, lang), lambda lang: remedies.table(TREATED, lang)):
        english, chinese = (sorted(re.findall(r"\d+(?:\.\d+)?", make(lang))) for lang in ("en", "zh"))
        assert english == chinese
    assert set(CHINESE) == {fault.name for fault in FAULTS}


TREATED = [
    dataclasses.replace(spoiled(loss, None), case=Case("GPT-2", seed, "no causal mask", **arm))  # type: ignore[arg-type]
    for seed in (0, 1)
    for arm, loss in (({}, 3.0), ({"mended": 100}, 1.0 + 3 * seed), ({"slower": 100}, 2.0))
]


def test_a_remedy_is_compared_with_leaving_it_and_with_a_lower_rate() -> None:
    assert "| no causal mask | 2 | 3.00 | 2.50 | 2.00 | 1 | 1 |" in remedies.table(TREATED)
