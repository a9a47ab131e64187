"""The counts add up, a small evaluation runs through, and the page says the same in both languages."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest

from softscope._text import LANGS
from softscope.doctor.evaluation import counts, patients, spoil, subjects, table
from softscope.doctor.evaluation.counts import Count
from softscope.doctor.evaluation.details import details
from softscope.doctor.evaluation.opinion import Cost

DOCS = pathlib.Path(__file__).parents[3] / "docs"


def test_counts_add_up() -> None:
    one = Count(models=1, useful=3, starving=1, cost=Cost(3.0, 0.5, 1.0, 10.0))
    both = one + Count(models=1, useful=2)
    assert (both.models, both.useful, both.starving, both.cost) == (2, 5, 1, Cost(3.0, 0.5, 1.0, 10.0))
    for lang in LANGS:
        made = table.table({"healthy": one, "q × 30": one}, lang)
        lines = made[: made.index("\n\n")].splitlines()
        assert {line.count("|") for line in lines} == {2 + len(table.COLUMNS)}
        assert len(lines) == 2 + 2 + 1
        assert "2/6 = 33.3%" in made
        assert "5.0%" in made, "the trials' share of the training time"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[patients.Patient]:
    """A seed of an evaluation that is cut down to one kind of model."""
    monkeypatch.setattr(patients, "STEPS", 40)
    monkeypatch.setattr(patients, "RATES", (3e-3,))
    monkeypatch.setattr(patients, "START_SUBJECTS", (subjects.RECALL,))
    monkeypatch.setattr(patients, "STARTS", {"scale 4": patients.STARTS["scale 4"]})
    monkeypatch.setattr(patients, "COPIES", 1)
    monkeypatch.setattr(subjects, "OURS", (subjects.RECALL,))
    monkeypatch.setattr(subjects, "FAMILIES", ())
    shares: list[float] = []
    found = list(patients.patients(0, shares.append))
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] < 1
    return found


def test_one_seed_of_a_small_evaluation(few: list[patients.Patient]) -> None:
    assert [patient.case.way for patient in few] == ["healthy", "q × 30", "k shifted", "scale 4"]
    healthy, single, shifted, started = few
    assert healthy.learned
    assert not healthy.touched
    assert len(single.touched) == len(shifted.touched) == 1
    assert started.touched == started.worth.keys()
    for patient in few:
        # The doctor and the truth speak of the same heads.
        assert set(counts.states(patient.opinion.tried)) >= set(patient.worth) >= patient.touched
        found = counts.count(patient)
        assert found.heads >= found.judged >= found.useful >= found.starving
        assert found.spoiled >= found.stuck >= found.stuck_named
        tried = len(patient.opinion.trials)
        assert found.cost.passes >= 1 + 2 * tried or not tried
        assert list(details(patient))
    total = sum(counts.crossed(few).values())
    assert total == sum(len(patient.worth) for patient in few)
    assert dataclasses.asdict(sum(map(counts.count, few), Count()))["models"] == 4


def test_the_page_says_the_same_in_both_languages() -> None:
    english, chinese = ((DOCS / f"telling-apart{end}.md").read_text("utf-8") for end in ("", ".zh-CN"))
    figures = [
        [re.findall(r"\d+(?:\.\d+)?", "|".join(line.split("|")[2:])) for line in page.splitlines() if line[:2] == "| "]
        for page in (english, chinese)
    ]
    assert len(figures[0]) >= 2 + len(spoil.WAYS)
    assert figures[0] == figures[1]
    for page, lang in ((english, "en"), (chinese, "zh")):
        assert "python -m softscope.doctor.evaluation" in page
        assert all(f"| {title.of(lang)} |" in page for title in spoil.WAYS.values())
