"""An exercise inside a lesson: what is asked, where it is answered, hints, and what the grader says.

An answer is text, and only the grader's process runs it: a lesson's kernel is a thread of the server. Where there is no
homework a lesson only says where to look for it.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

import marimo as mo

from softscope.lab import progress

if TYPE_CHECKING:
    from softscope.lab.page import Page

HOMEWORK = "softscope.lab.homework"
LETTERS = "abcdef"


def _exercise(number: int) -> Any:
    """The exercise; None where the homework is not there."""
    if importlib.util.find_spec(HOMEWORK) is None:
        return None
    return importlib.import_module(f"{HOMEWORK}.catalogue").find(str(number))


def _asks(exercise: Any) -> bool:
    """Whether it is a quiz."""
    return hasattr(exercise, "questions")


def editor(page: Page, number: int) -> Any:
    """Where the answer goes: code, graded when the field is left, or choices."""
    exercise, lang = _exercise(number), page.lang
    if exercise is None:
        return mo.ui.code_editor("", disabled=True, min_height=1)
    if not _asks(exercise):
        return mo.ui.code_editor(exercise.starter.of(lang), language="python", min_height=180)
    questions = []
    for place, question in enumerate(exercise.questions, 1):
        choices = {f"{letter}. {c.says.of(lang)}": letter for letter, c in zip(LETTERS, question.choices, strict=False)}
        questions.append(mo.ui.radio(choices, label=f"**{place}.** {question.asks.of(lang)}"))
    return mo.ui.array(questions)


def shown(page: Page, number: int, written: Any) -> Any:
    """The task, the place for the answer, and hints from a nudge to nearly there."""
    exercise, t = _exercise(number), page.t
    if exercise is None:
        return mo.md(t("作业：`softscope homework list`", "Homework: `softscope homework list`"))
    head = mo.md(f"### {t('练习', 'Exercise')}: {exercise.title.of(page.lang)}\n\n{exercise.task.of(page.lang)}")
    hints = {
        f"{t('提示', 'Hint')} {place}": mo.md(hint.of(page.lang)) for place, hint in enumerate(exercise.hints, start=1)
    }
    answer = mo.vstack(list(written)) if _asks(exercise) else written
    return mo.vstack([head, answer, *([mo.accordion(hints)] if hints else [])])


def graded(page: Page, number: int, written: Any) -> Any:
    """What the grader says of the answer as it stands; nothing about one that was not touched."""
    exercise = _exercise(number)
    if exercise is None:
        return mo.md("")
    if _asks(exercise):
        answer = "".join(written.value) if all(written.value) else ""
    else:
        answer = written.value if written.value.strip() != exercise.starter.of(page.lang).strip() else ""
    if not answer:
        return mo.md("")
    found = importlib.import_module(HOMEWORK).grade(exercise.id, answer, lang=page.lang)
    _remember(exercise.id, found.passed)
    if found.passed:
        return mo.callout(mo.md(page.t("通过了！", "Passed. ") + found.notice), kind="success")
    return mo.callout(mo.md("\n".join(f"- {message}" for message in found.messages)), kind="warn")


def _remember(name: str, passed: bool) -> None:
    """The same progress as that of `softscope homework`, where the lab keeps any."""
    if progress.current().path is not None and importlib.util.find_spec(f"{HOMEWORK}.progress") is not None:
        kept = importlib.import_module(f"{HOMEWORK}.progress")
        kept.Progress(kept.file()).graded(name, passed)
