"""Exercises in a lesson: shown, answered, graded, saved; and what an answer prints is only ever text."""

import html
import json
import os
import re
import types

import pytest

from lab.homework.answers import NUMPY, RIGHT
from softscope.lab import practice, progress
from softscope.lab.homework import EXERCISES, IDS, Quiz, find, number
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


def checked(page, name, value):
    """What stands under the answer field once Check has sent this value; None before anybody pressed it."""
    practice.shown(page, name, "")
    return practice.graded(page, name, types.SimpleNamespace(value=value))


def chosen(letters):
    return {f"q{place}": letter for place, letter in enumerate(letters, 1)}


def kept(page, name):
    """What the answer field holds when a page opens."""
    return practice.editor(page, name).element.value


def told(callout):
    """The HTML inside the callout."""
    return json.loads(html.unescape(re.search("data-html='(.*?)'", callout.text).group(1)))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_an_exercise_is_task_field_and_check_with_its_hints_below_the_verdict(exercise, lang):
    page = Page("overflow", lang)
    written = practice.editor(page, exercise.id)
    text = practice.shown(page, exercise.id, written).text
    assert (
        html.escape(practice.EXERCISE.of(lang).format(number=number(exercise), title=exercise.title.of(lang))) in text
    )
    assert practice.CHECK.of(lang) in text
    below = practice.graded(page, exercise.id, written).text
    for place, says in enumerate(exercise.hints, 1):
        name, words = practice.HINT.of(lang).format(place=place), html.escape(says.of(lang))
        assert name not in text, "hints come after the verdict"
        assert name in below
        assert words not in below, "a hint is for who asks"
        assert words.split("\n\n")[0] in practice.hint(page, exercise.id, place).text
    assert "marimo-callout" not in below, "nothing is judged before somebody presses Check"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_was_given_is_not_graded(lang):
    page, given = Page("overflow", lang), find("softmax").starter.of(lang)
    for sent in (given, f"{given}\n\n", "", " \n"):
        assert practice.UNTOUCHED.of(lang) in checked(page, "softmax", sent).text


def test_a_check_leaves_an_open_hint_open():
    """The verdict's cell runs at every check; a hint made anew in it would close."""
    page = Page("overflow", "en")
    practice.shown(page, "softmax", "")
    hints = page.hints["softmax"]
    first, second = (practice.graded(page, "softmax", types.SimpleNamespace(value=code)).text for code in ("x", FINE))
    assert hints.text in first
    assert hints.text in second
    assert "Passed!" in second
    assert second.index("Passed!") < second.index("Hint 1"), "the verdict stands right under the editor"


def test_an_answer_is_graded_and_not_kept_outside_of_the_lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Page("overflow", "en")
    wrong = checked(page, 1, "import numpy as np\ndef softmax(x):\n    return np.exp(x)")
    assert "Not yet" in wrong.text
    assert "sum" in wrong.text
    assert "Subtracting the maximum" in checked(page, 1, FINE).text
    assert os.listdir(tmp_path) == []


def test_what_an_answer_says_is_only_text():
    source = "def softmax(x):\n    print('<script>1</script>\\x1b[31m')\n    raise ValueError('<img src=x>**bold**')"
    text = told(checked(Page("overflow", "en"), 1, source))
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
    checked(page, 1, "def softmax(x): return x")
    assert ExerciseProgress(folder / "homework.json").state("softmax") == "tried"
    assert kept(page, 1) == "def softmax(x): return x", "what was written is there again"
    checked(page, 1, FINE)
    assert kept(Page("overflow", "zh"), 1) == FINE
    assert practice.passed() == 1
    assert practice.BEFORE.en in checked(page, 1, None).text


@pytest.mark.usefixtures("folder")
def test_a_quiz_is_choices():
    page = Page("rivals", "zh")
    assert kept(page, QUIZ.id) == chosen([None] * len(LETTERS))
    half = checked(page, QUIZ.id, chosen([*LETTERS[:-1], None])).text
    assert practice.UNANSWERED.zh.format(places=len(LETTERS)) in half
    assert "通过了" in checked(page, QUIZ.id, chosen(LETTERS)).text
    assert kept(page, QUIZ.id) == chosen(LETTERS)
    wrong = ["a" if LETTERS[0] != "a" else "b", *LETTERS[1:]]
    reason = QUIZ.questions[0].choices["ab".index(wrong[0])].reason.zh
    assert reason in checked(page, QUIZ.id, chosen(wrong)).text


def test_the_last_exercise_ends_with_a_finish(folder):
    kept = ExerciseProgress(folder / "homework.json")
    for name in IDS[1:]:
        kept.graded(name, True)
    page = Page("overflow", "en")
    assert "You have passed all" not in checked(page, 1, "def softmax(x): return x").text
    assert "You have passed all" in checked(page, 1, FINE).text


def test_a_place_that_cannot_be_written_to_does_not_stop_a_lesson(folder):
    (folder / "answers").write_text("", "utf-8")
    assert "Passed" in checked(Page("overflow", "en"), 1, FINE).text
    assert kept(Page("overflow", "zh"), 1) == FINE, "it is known until the lab ends"
    (folder / "answers").unlink()
    checked(Page("rivals", "en"), QUIZ.id, chosen(LETTERS))
    assert (folder / "answers" / "softmax").read_text("utf-8") == FINE, "and is written when that is possible again"


def test_one_failure_to_write_makes_no_page_forget(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dump", full)
        page = Page("overflow", "en")
        checked(page, 1, FINE)
        assert practice.passed() == 1
        assert progress.current().trouble == practice.homework().trouble == "No space left on device"
    Page("rivals", "en")
    practice.hint(page, 1, 1)
    again = progress.LessonProgress(folder / "lab.json")
    assert (again.state("overflow"), again.state("rivals")) == ("open", "open")
    assert ExerciseProgress(folder / "homework.json").passed == 1
    assert kept(page, 1) == FINE


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["dimension", "online-softmax"])
def test_lines_of_a_task_stay_apart(name, lang):
    task = find(name).task.of(lang)
    text = practice._paragraphs(task)
    assert text.count("<br>") == task.replace("\n\n", "").count("\n") > 0
    assert practice._paragraphs("a<br>\n<b>") == "<p>a&lt;br&gt;<br>&lt;b&gt;</p>"


def test_a_system_without_limits_is_told(monkeypatch):
    def refuse(*_, **__):
        raise practice.UnsupportedError

    monkeypatch.setattr(practice, "grade", refuse)
    assert practice.UNSUPPORTED.en in checked(Page("overflow", "en"), 1, FINE).text
