"""Exercises in a lesson: shown, answered, graded by the homework's own grader, which a stand-in plays here."""

import importlib.machinery
import sys
import types

import pytest

from softscope.experiments.ledger.wording import t
from softscope.lab import practice, progress
from softscope.lab.page import Page

CODE = types.SimpleNamespace(
    id="softmax",
    title=t("手写", "By hand"),
    task=t("写出来", "Write it"),
    starter=t("# 从这里开始", "# begin here"),
    hints=(t("想想最大值", "think of the maximum"),),
)
QUIZ = types.SimpleNamespace(
    id="quiz",
    title=t("测验", "Quiz"),
    task=t("选一选", "Choose"),
    hints=(),
    questions=[
        types.SimpleNamespace(
            asks=t("几个？", "How many?"),
            choices=[types.SimpleNamespace(says=t("一", "one")), types.SimpleNamespace(says=t("二", "two"))],
        )
    ],
)


@pytest.fixture
def homework(monkeypatch):
    """A stand-in for the homework; gives what was graded and what was remembered."""
    graded, remembered = [], []

    def grade(name, source, *, lang):
        graded.append((name, source, lang))
        passed = "max" in source or source == "b"
        return types.SimpleNamespace(passed=passed, messages=("it overflows",), notice="notice the shift")

    class Kept:
        def __init__(self, path):
            self.path = path

        def graded(self, name, passed):
            remembered.append((name, passed))

    made = {
        "stand_in": {"grade": grade},
        "stand_in.catalogue": {"find": {"1": CODE, "4": QUIZ}.__getitem__},
        "stand_in.progress": {"Progress": Kept, "file": lambda: "file"},
    }
    for name, values in made.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(practice, "HOMEWORK", "stand_in")
    return types.SimpleNamespace(graded=graded, remembered=remembered)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_exercise_is_shown_with_its_hints(homework, lang):
    page = Page("overflow", lang)
    written = practice.editor(page, 1)
    assert written.value == CODE.starter.of(lang)
    text = practice.shown(page, 1, written).text
    for part in (CODE.title, CODE.task, CODE.hints[0]):
        assert part.of(lang) in text
    assert practice.graded(page, 1, written).text.strip() in ("", practice.mo.md("").text.strip())
    assert homework.graded == [], "what was not touched is not graded"


def answered(value):
    return types.SimpleNamespace(value=value)


def test_an_answer_is_graded(homework):
    page = Page("overflow", "en")
    assert "it overflows" in practice.graded(page, 1, answered("exp(x)")).text
    assert "notice the shift" in practice.graded(page, 1, answered("exp(x - max)")).text
    assert homework.graded == [("softmax", "exp(x)", "en"), ("softmax", "exp(x - max)", "en")]
    assert homework.remembered == [], "a lesson outside of the lab keeps nothing"


def test_the_lab_remembers_what_was_graded(homework, monkeypatch, tmp_path):
    monkeypatch.setattr(progress, "_current", progress.Progress(tmp_path / "lab.json"))
    page = Page("overflow", "en")
    practice.graded(page, 1, answered("exp(x)"))
    practice.graded(page, 1, answered("exp(x - max)"))
    assert homework.remembered == [("softmax", False), ("softmax", True)]


def test_a_quiz_is_choices(homework):
    page = Page("rivals", "zh")
    written = practice.editor(page, 4)
    assert len(written.value) == 1
    assert "几个？" in practice.shown(page, 4, written).text
    practice.graded(page, 4, answered([None]))
    assert homework.graded == []
    assert "notice the shift" in practice.graded(page, 4, answered(["b"])).text


def test_homework_that_is_not_there_leaves_the_lesson_whole(monkeypatch):
    monkeypatch.setattr(practice, "HOMEWORK", "softscope.lab.no_such_homework")
    page = Page("overflow", "en")
    written = practice.editor(page, 1)
    assert "softscope homework list" in practice.shown(page, 1, written).text
    assert practice.graded(page, 1, written).text is not None
