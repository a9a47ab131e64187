"""An exercise inside a lesson: an editor whose text only the grader's process runs, and what the grader says."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

import marimo as mo

if TYPE_CHECKING:
    from softscope.lab.page import Page

HOMEWORK = "softscope.lab.homework"


def _exercise(number: int) -> Any:
    """The exercise, or None where the homework is not there or it is a quiz, which the command line asks."""
    if importlib.util.find_spec(HOMEWORK) is None:
        return None
    found = importlib.import_module(f"{HOMEWORK}.catalogue").find(str(number))
    return found if hasattr(found, "starter") else None


def editor(page: Page, number: int) -> Any:
    """Where the answer is written; graded when the field is left."""
    exercise = _exercise(number)
    if exercise is None:
        return mo.ui.code_editor("", disabled=True, min_height=1)
    return mo.ui.code_editor(exercise.starter.of(page.lang), language="python", min_height=180)


def shown(page: Page, number: int, written: Any) -> Any:
    """The task above the editor."""
    exercise = _exercise(number)
    if exercise is None:
        words = page.t("作业：`softscope homework list`", "Homework: `softscope homework list`")
        return mo.md(words)
    head = page.t("练习", "Exercise")
    return mo.vstack([mo.md(f"### {head}: {exercise.title.of(page.lang)}\n\n{exercise.task.of(page.lang)}"), written])


def graded(page: Page, number: int, written: Any) -> Any:
    """What the grader says of the text as it stands; nothing about one that was not touched."""
    exercise = _exercise(number)
    if exercise is None or written.value.strip() == exercise.starter.of(page.lang).strip():
        return mo.md("")
    found = importlib.import_module(HOMEWORK).grade(exercise.id, written.value, lang=page.lang)
    if found.passed:
        return mo.callout(mo.md(page.t("通过了！", "Passed. ") + found.notice), kind="success")
    return mo.callout(mo.md("\n".join(f"- {message}" for message in found.messages)), kind="warn")
