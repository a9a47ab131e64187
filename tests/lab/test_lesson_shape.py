"""How a lesson is laid out: what stands above what, and what is folded away until somebody asks."""

import ast
import re
import types

import pytest

from lab.notebooks import opened, shown_by
from softscope.experiments import chart
from softscope.lab import course, homework
from softscope.lab.page import Page


def cells_of(lesson):
    """The functions in a notebook that are its cells, in order."""
    return [node for node in ast.parse(lesson.notebook.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("lesson", course.LESSONS, ids=lambda lesson: lesson.name)
def test_no_solution_is_shown_above_its_exercise(lesson):
    """Code that a page shows before an exercise does not pass when it is handed in."""
    shown = []
    for cell in cells_of(lesson):
        source = ast.unparse(cell)
        if "show_code" in source:
            shown += [node for node in cell.body if isinstance(node, ast.FunctionDef)]
        for found in re.findall(r"practice\.editor\(page, ['\"]?([\w-]+)", source):
            exercise = homework.find(found)
            for function in shown if isinstance(exercise, homework.Exercise) else ():
                renamed = ast.unparse(function).replace(f"def {function.name}(", f"def {exercise.names[0]}(")
                assert not homework.grade(exercise.id, f"import numpy as np\n{renamed}\n").passed, function.name


def test_the_exercises_are_numbered_in_the_order_in_which_they_come():
    asked = [
        homework.find(found).id
        for lesson in course.LESSONS
        for found in re.findall(r'practice\.editor\(page, "?([\w-]+)', lesson.notebook.read_text("utf-8"))
    ]
    assert asked == list(homework.IDS)


def outputs_with(name, words):
    """What the cells show that say these words."""
    return [text for text in shown_by(name, "en") if words in text]


def test_guess_first_hides_the_answer_behind_a_click():
    (text,) = outputs_with("temperature", "Guess first")
    before, _, folded = text.partition("<marimo-accordion")
    assert "Show the answer" in folded
    for sign in ("vega", "lab-table", "share equally"):
        assert sign in folded
        assert sign not in before


def test_the_derivation_is_open_and_its_check_is_a_fold_of_its_own():
    (derivation,) = outputs_with("gradient", "The derivation, step by step")
    assert "<marimo-accordion" not in derivation
    (check,) = outputs_with("gradient", "checked by computer algebra")
    assert "<marimo-accordion" in check


@pytest.mark.parametrize("name", [lesson.name for lesson in course.LESSONS[:5]])
def test_standard_errors_are_folded_away(name):
    fold = re.compile(r"<marimo-accordion.*?</marimo-accordion>", re.DOTALL)
    open_ones = [fold.sub("", text) for text in shown_by(name, "en")]
    assert [text for text in open_ones if re.search(r"\d ± \d", text)] == []


def test_a_chart_is_as_wide_as_its_column():
    rows = [{"x": x, "y": x, "name": "a"} for x in (0.0, 1.0)]
    one = chart.curves(rows, chart.Axis("x", "x"), chart.Axis("y", "y"), ("name", ""))
    page = Page("sharpness", "en")
    assert page.draw(one).to_dict()["width"] == "container"
    assert "width" not in page.draw(chart.beside(one, one)).to_dict(), "charts side by side keep theirs"


def test_the_cliff_says_so_only_when_it_is_one():
    for k, words in ((1, "This is still a slope"), (16, "lies on flat ground")):
        outputs, _ = opened("gradient").run(defs={"lang": "en", "steepness": types.SimpleNamespace(value=k)})
        assert any(words in output.text for output in outputs if hasattr(output, "text"))
