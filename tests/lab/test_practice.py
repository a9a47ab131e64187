"""Exercises in a lesson: shown, answered, graded, saved; and what an answer prints is only ever text."""

import html
import json
import os
import re
import types

import pytest

from lab.homework.answers import NUMPY, RIGHT
from softscope.lab import practice, progress
from softscope.lab.homework import EXERCISES, IDS, Quiz, find
from softscope.lab.homework.progress import ExerciseProgress
from softscope.lab.page import Page

FINE = NUMPY + RIGHT["softmax"][0]
QUIZ = next(exercise for exercise in EXERCISES if isinstance(exercise, Quiz))
LETTERS = [question.right for question in QUIZ.questions]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A lab that keeps its progress in this folder."""
    monkeypatch.setattr(progress, "_current", progress.LessonProgress(tmp_path / "lab.json"))
    return tmp_path


def answered(value):
    return types.SimpleNamespace(value=value)


def told(callout):
    """The HTML inside the callout."""
    return json.loads(html.unescape(re.search("data-html='(.*?)'", callout.text).group(1)))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("number", range(1, len(IDS) + 1))
def test_an_exercise_is_shown_with_its_hints(number, lang):
    page, exercise = Page("overflow", lang), find(str(number))
    written = practice.editor(page, number)
    text = practice.shown(page, number, written).text
    assert html.escape(exercise.title.of(lang)) in text
    for place, says in enumerate(exercise.hints, 1):
        assert practice.HINT.of(lang).format(place=place) in text
        words = html.escape(says.of(lang))
        assert words not in text, "a hint is for who asks"
        assert words.split("\n\n")[0] in practice.hint(page, number, place).text
    assert practice.graded(page, number, written).text == "", "what was not touched is not graded"


def test_an_answer_is_graded_and_not_kept_outside_of_the_lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Page("overflow", "en")
    wrong = practice.graded(page, 1, answered("import numpy as np\ndef softmax(x):\n    return np.exp(x)"))
    assert "Not yet" in wrong.text
    assert "sum" in wrong.text
    assert "Subtracting the maximum" in practice.graded(page, 1, answered(FINE)).text
    assert os.listdir(tmp_path) == []


def test_what_an_answer_says_is_only_text():
    source = "def softmax(x):\n    print('<script>1</script>\\x1b[31m')\n    raise ValueError('<img src=x>**bold**')"
    text = told(practice.graded(Page("overflow", "en"), 1, answered(source)))
    assert "&lt;img src=x&gt;**bold**" in text
    assert "&lt;script&gt;1&lt;/script&gt;?[31m" in text
    assert "<img" not in text
    assert "<script" not in text


def test_a_hint_that_was_opened_counts_as_on_the_command_line(folder):
    page = Page("overflow", "en")
    practice.shown(page, 1, practice.editor(page, 1))
    assert ExerciseProgress(folder / "homework.json").hints("softmax") == 0
    for place, count in ((2, 2), (1, 2), (3, 3)):
        practice.hint(page, 1, place)
        assert ExerciseProgress(folder / "homework.json").hints("softmax") == count


def test_the_lab_remembers_answer_and_grade(folder):
    page = Page("overflow", "en")
    assert practice.passed() == 0
    practice.graded(page, 1, answered("def softmax(x): return x"))
    assert ExerciseProgress(folder / "homework.json").state("softmax") == "tried"
    assert practice.editor(page, 1).value == "def softmax(x): return x", "what was written is there again"
    practice.graded(page, 1, answered(FINE))
    assert practice.editor(Page("overflow", "zh"), 1).value == FINE
    assert practice.passed() == 1


@pytest.mark.usefixtures("folder")
def test_a_quiz_is_choices():
    page = Page("rivals", "zh")
    assert practice.editor(page, 4).value == [None] * len(LETTERS)
    assert practice.graded(page, 4, answered([*LETTERS[:-1], None])).text == ""
    assert "通过了" in practice.graded(page, 4, answered(LETTERS)).text
    assert practice.editor(page, 4).value == LETTERS
    wrong = ["a" if LETTERS[0] != "a" else "b", *LETTERS[1:]]
    reason = QUIZ.questions[0].choices["ab".index(wrong[0])].reason.zh
    assert reason in practice.graded(page, 4, answered(wrong)).text


def test_the_last_exercise_ends_with_a_finish(folder):
    kept = ExerciseProgress(folder / "homework.json")
    for name in IDS[1:]:
        kept.graded(name, True)
    page = Page("overflow", "en")
    assert "You have passed all" not in practice.graded(page, 1, answered("def softmax(x): return x")).text
    assert "You have passed all" in practice.graded(page, 1, answered(FINE)).text


def test_a_place_that_cannot_be_written_to_does_not_stop_a_lesson(folder):
    (folder / "answers").write_text("", "utf-8")
    assert "Passed" in practice.graded(Page("overflow", "en"), 1, answered(FINE)).text
    assert practice.editor(Page("overflow", "zh"), 1).value == FINE, "it is known until the lab ends"
    (folder / "answers").unlink()
    practice.graded(Page("rivals", "en"), 4, answered(LETTERS))
    assert (folder / "answers" / "softmax").read_text("utf-8") == FINE, "and is written when that is possible again"


def test_one_failure_to_write_makes_no_page_forget(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dump", full)
        page = Page("overflow", "en")
        practice.graded(page, 1, answered(FINE))
        assert practice.passed() == 1
        assert progress.current().trouble == practice.homework().trouble == "No space left on device"
    Page("rivals", "en")
    practice.hint(page, 1, 1)
    again = progress.LessonProgress(folder / "lab.json")
    assert (again.state("overflow"), again.state("rivals")) == ("open", "open")
    assert ExerciseProgress(folder / "homework.json").passed == 1
    assert practice.editor(page, 1).value == FINE


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("number", [3, 8])
def test_lines_of_a_task_stay_apart(number, lang):
    task = find(str(number)).task.of(lang)
    text = practice._paragraphs(task)
    assert text.count("<br>") == task.replace("\n\n", "").count("\n") > 0
    assert practice._paragraphs("a<br>\n<b>") == "<p>a&lt;br&gt;<br>&lt;b&gt;</p>"


def test_a_system_without_limits_is_told(monkeypatch):
    def refuse(*_, **__):
        raise practice.UnsupportedError

    monkeypatch.setattr(practice, "grade", refuse)
    assert practice.UNSUPPORTED.en in practice.graded(Page("overflow", "en"), 1, answered(FINE)).text
