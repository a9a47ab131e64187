"""What lessons are made of; and, without a browser, every lesson run from its first cell to its last."""

import re
import types

import pytest
import torch

from lab import chromium
from lab.notebooks import opened
from softscope.experiments import properties
from softscope.experiments.learning import remedy_options
from softscope.experiments.maps import MAPS
from softscope.experiments.recall import attention_weights
from softscope.lab import course, patient, puzzles, quantiles, rivals
from softscope.lab.reads import reads
from softscope.tasks import RecallModel

CHINESE = re.compile(r"[\u4e00-\u9fff]")


# If there is a browser, test_browser.py runs every lesson in its page, and this moves to the slow tier.
@pytest.mark.parametrize(
    "lesson",
    [pytest.param(one, marks=pytest.mark.slow if chromium.found() else ()) for one in course.LESSONS],
    ids=lambda lesson: lesson.name,
)
def test_it_runs_in_both_languages(lesson):
    pages = {}
    for lang in ("zh", "en"):
        outputs, names = opened(lesson.name).run(defs={"lang": lang})
        assert names["page"].lang == lang
        assert names["page"].lesson is lesson
        texts = [output.text for output in outputs if hasattr(output, "text")]
        assert len(texts) >= 6
        pages[lang] = "\n".join(texts)
        assert "lab-title" in pages[lang], "no head"
        assert "lab-next" in pages[lang], "no foot"
    assert len(CHINESE.findall(pages["zh"])) > 300
    allowed = pages["en"].replace("中文", "")
    assert not CHINESE.search(re.sub(r"\\u[0-9a-f]{4}", "", allowed)), "Chinese on the English page"


def run_with(name, **given):
    """The English text of a lesson, and its names, with the given values in place of what its cells define."""
    outputs, names = opened(name).run(defs={"lang": "en"} | given)
    return "\n".join(output.text for output in outputs if hasattr(output, "text")), names


def holding(value):
    return types.SimpleNamespace(value=value)  # an element set by the reader


def test_a_sum_that_overflows_is_not_called_right():
    """In float16 the exponentials of [9, 10, 11] are finite but their sum is not: zeros, and no nan."""
    right, wrong = (run_with("overflow", lift=holding(c), precision=holding("float16"))[0] for c in (7, 8))
    assert "Both versions give" in right
    assert "Both versions give" not in wrong
    assert "yet, but already wrong" in wrong


def test_what_was_drawn_just_now_differs_at_every_visit():
    first, second = (run_with("scaling")[1] for _ in range(2))
    assert first["sampled"] != second["sampled"]
    assert first["largest"] != second["largest"]


def test_the_gradients_are_drawn_as_quantiles_against_d():
    rows = [
        {"d": d, "name": name, "low": 1e-30, "median": d / 8, "high": d, "mean": d / 4}
        for d in (16, 64)
        for name in ("a", "b")
    ]
    drawn = quantiles.bands(rows, title="norm").to_dict()
    (kept,) = drawn["datasets"].values() if "datasets" in drawn else [drawn["data"]["values"]]
    assert [row["median"] for row in kept] == [2.0, 2.0, 8.0, 8.0]
    assert min(row["low"] for row in kept) == quantiles.FLOOR, "a log axis has no place for 1e-30"
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["area", "line", "line"]


def test_a_cleared_seed_is_the_first_one():
    first, cleared = (run_with("attention", SEED=7, seed=holding(value))[1] for value in (7, None))
    assert (first["q"] == cleared["q"]).all()


@pytest.mark.parametrize(
    ("typed", "said", "scores"),
    [
        ("1，2", "", [1.0, 2.0]),
        ("", "Found no numbers; showing the example [1.20, ", list(rivals.EXAMPLE)),
        ("1 abc nan", "Could not read abc nan; showing [1.00].", [1.0]),
        ("9 " * 9, "Too many numbers; showing the first 8, [9.00, ", [9.0] * 8),
    ],
)
def test_what_cannot_be_read_is_said(typed, said, scores):
    text, names = run_with("rivals", typed=holding(typed))
    assert names["scores"].tolist() == scores
    assert said in text
    assert bool(said) == ("; showing " in text)


def test_the_files_are_those_of_the_course():
    assert sorted(course.FOLDER.glob("*.py")) == sorted(lesson.notebook for lesson in course.LESSONS)
    assert (course.FOLDER / "pyproject.toml").exists(), "without it marimo runs no cell on opening"


def state_of(course):
    (found,) = course.diagnosis.view.states.values()
    return found.state


def test_the_doctor_sees_the_patient_starve_without_the_scale_and_learn_with_it():
    seen = []
    sick = patient.treat("none", d=256, steps=40, every=4, watch=lambda reading, _: seen.append(reading))
    well = patient.treat("scaled", d=256, steps=40, every=4)
    assert seen == sick.readings
    assert len(sick.readings) == 10
    assert well.accuracy > 0.9 > sick.accuracy
    assert (state_of(sick), state_of(well)) == ("starving", "right")
    assert [one.remedy for one in sick.diagnosis.prescriptions] == ["scale"]
    assert well.diagnosis.prescriptions == ()
    assert well.looks[-1].right > 12 > 6 > sick.looks[-1].right, (
        "one reads the keys it is asked for, the other does not"
    )
    drawn = reads({"well": well.looks, "sick": sick.looks}, "en").text
    assert drawn.count('class="right"') + drawn.count('class="wrong"') == 2 * 10 * 16
    assert f"reads {well.looks[-1].right} of 16 right" in drawn
    assert sick.readings[-1].advantage + 2 * sick.readings[-1].advantage_error < well.readings[-1].advantage


def test_the_weights_are_those_of_the_model():
    """They must follow the model's options, not only its scale."""
    asked = torch.arange(16)[None]
    for remedy in ("scaled", "none", "entmax", "softcap", "unit", "learned"):
        model = RecallModel(16, vocabulary=16, options=remedy_options(remedy, 16), seed=0)
        weights = attention_weights(model, asked, asked)
        mixed = weights @ model.attention.w_v(model.value_table(asked))
        torch.testing.assert_close(model.readout(model.attention.w_o(mixed)), model(asked, asked, asked))


def test_of_two_equal_models_none_is_called_the_best():
    runs = {name: holding(None) for name in ("a", "b", "c")}
    for run, accuracy in zip(runs.values(), (0.99, 1.0, 0.998), strict=True):
        run.accuracy = accuracy
    assert patient.best(runs) == ["b", "c"]


def test_with_more_keys_in_all_the_unscaled_patient_learns_and_the_doctor_says_so():
    """The lesson says what being stuck hangs on."""
    many = patient.treat("none", d=64, keys=64, steps=160, every=8)
    assert many.accuracy > 0.8
    assert state_of(many) in ("right", "useful")


@pytest.mark.parametrize("remedy", ["temperature", "unit"])
def test_a_remedy_revives_it(remedy):
    treated = patient.treat(remedy, d=64, steps=40, every=4)
    assert treated.accuracy > 0.9
    assert state_of(treated) != "starving"


@pytest.mark.parametrize("remedy", [name for name in patient.REMEDIES if name != "none"])
def test_every_remedy_can_be_chosen(remedy):
    assert len(patient.treat(remedy, d=16, steps=2, every=1).readings) == 2


def judged(place, verdict):
    """Lesson 10 in English, with one puzzle opened and answered."""
    given = types.SimpleNamespace(value=[None] * len(puzzles.CHOSEN))
    given.value[place] = verdict
    which = holding(place + 1)
    claim = puzzles.claim(puzzles.CHOSEN[place])
    verdicts = {"holds": "holds", "holds only if …": "only-if", "fails": "fails"}
    return run_with("mistakes", VERDICTS=verdicts, answers=given, which=which, claim=claim)[0]


@pytest.mark.parametrize("name", puzzles.CHOSEN)
def test_no_puzzle_answers_with_a_double_negative(name):
    denied = re.compile(r"^(no|not|never)\b|\b(misses|differs|lacks|gets no)\b", re.IGNORECASE)
    claim, outcome = puzzles.claim(name), puzzles.puzzle(name).outcome
    assert not denied.search(claim.says.en) or outcome.verdict != "fails", "fails that it is not so?"
    said = judged(puzzles.CHOSEN.index(name), outcome.verdict)
    assert "You are right" in said
    assert "**" not in said, "a mark that Markdown did not read"
    crossed = re.findall(r"✗ ([^<]+)", said)
    assert (outcome.verdict == "only-if") == bool(crossed)
    assert not any(denied.search(label) for label in crossed)
    assert not CHINESE.search(re.sub(r"中文", "", said)), "a Chinese quotation on the English page"


def test_the_formula_that_overflows_is_not_given_as_the_cure():
    """x − log Σ exp(x) fails at [1000, 0], and the page shows it; only log_softmax is right in every row."""
    said = re.sub(r"<[^>]+>", " ", run_with("rivals")[0])
    rows = {name: said[said.index(name) :][: len(name) + 120] for name in ("x − log Σ exp(x)", "log_softmax(x) ")}
    assert "-inf" in rows["x − log Σ exp(x)"]
    assert "inf" not in rows["log_softmax(x) "]
    assert "avoids this" not in said


def test_the_marks_of_lesson_8_are_the_experiments_and_the_ledgers():
    held = {row[0]: row[1:6] for row in rivals.marks("en")}
    for key, name in (("relu", "ReLU/Σ"), ("sigmoid", "sigmoid"), ("linear", "x/Σx")):
        assert held[name] == tuple(mark.held for mark in properties.report(MAPS[key]).values())
        assert f"{name} {sum(held[name])}/5" in str(puzzles.puzzle("S1-38").outcome.measured)


def test_the_puzzles_are_of_all_kinds():
    verdicts = [puzzles.puzzle(name).outcome.verdict for name in puzzles.CHOSEN if not puzzles.claim(name).slow]
    assert len(verdicts) == len(puzzles.CHOSEN)
    assert {"holds", "only-if", "fails"} == set(verdicts)
    assert verdicts.count("holds") >= 2
    with pytest.raises(ValueError, match="identity must be"):
        puzzles.claim("S9-99")
