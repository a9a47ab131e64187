"""The five properties: what each map has, the same in the ledger, the experiment and the lesson."""

import numpy as np
import pytest
import torch

from experiments.small import result
from softscope.experiments import maps, normalisers
from softscope.experiments.ledger.texts import rivals as ledger
from softscope.experiments.properties import DIFFERENTIABLE, DISTRIBUTION, FIVE, IN_RANGE, kept, report
from softscope.lab import rivals as lesson

# By key of softscope.experiments.maps: stands out, in [0, 1], sums to 1, differentiable, a distribution.
MARKS = {
    "softmax": "✓✓✓✓✓",
    "entmax": "✓✓✓✓✓",
    "mixed": "✓✓✓✓✓",
    "sparsemax": "✓✓✓✗✓",
    "hardmax": "✓✓✓✗✓",
    "linear": "✗✗✓✗✗",
    "relu": "✗✓✓✗✗",
    "relu_alone": "✗✗✗✗✗",
    "sigmoid": "✗✓✗✓✗",
    "sigmoid_bias": "✗✓✗✓✗",
}


def signs(held):
    return "".join("✓" if mark else "✗" for mark in held)


@pytest.mark.parametrize("key", maps.MAPS)
def test_what_each_map_has(key):
    marks = report(maps.MAPS[key])
    assert tuple(marks) == FIVE
    assert signs(mark.held for mark in marks.values()) == MARKS[key]
    assert kept(marks) == MARKS[key].count("✓")


def test_ledger_experiment_and_lesson_agree():
    by_name = {name.en: MARKS[key] for key, name in maps.NAMES.items()}
    in_ledger = {name: signs(mark.held for mark in ledger.marks(name).values()) for name in ledger.MAPS}
    in_lesson = {row[0]: signs(row[1:6]) for row in lesson.marks("en")}
    five = result("normalisers")["five"]
    in_experiment = {r["map"].en: signs(r[asked.key] for asked in FIVE) for r in five.records()}
    for found in (in_ledger, in_lesson, in_experiment):
        assert len(found) >= 7
        assert found == {name: by_name[name] for name in found}
    assert lesson.heads("zh")[:5] == [column.title.zh for column in five.columns[1:6]] == [p.name.zh for p in FIVE]
    counts = {r["map"].en: r["kept"] for table in ("five", "trained") for r in result("normalisers")[table].records()}
    assert counts == {name: by_name[name].count("✓") for name in counts}


def test_a_failure_is_shown_by_scores_and_numbers_in_both_languages():
    for key, held in MARKS.items():
        marks = report(maps.MAPS[key])
        for mark, sign in zip(marks.values(), held, strict=True):
            assert (mark.input is None) == (sign == "✓")
            assert mark.evidence.en
            assert mark.evidence.zh != mark.evidence.en
    above = report(maps.MAPS["relu_alone"])[IN_RANGE]
    assert above.evidence.en == "No weight may exceed 1, but one is 3."
    assert maps.relu(above.input).max() == 3.0


def test_no_answer_is_neither_differentiable_nor_a_distribution():
    def picky(x):
        return np.full_like(x, np.nan) if len(x) == 5 else maps.MAPS["softmax"](x)

    missed = [asked for asked, mark in report(picky).items() if not mark.held]
    assert missed == [DIFFERENTIABLE, DISTRIBUTION]


def test_the_maps_that_are_trained_are_the_ones_that_are_judged():
    x = np.random.default_rng(0).normal(0.0, 2.0, (200, 7))
    for key, f in normalisers.maps().items():
        got, wanted = f(torch.from_numpy(x)).numpy(), maps.MAPS[key](x)
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15, err_msg=key)
