"""An exercise inside a lesson: the task, the answer field, hints and the grader's feedback.

A lesson's kernel is a thread of the server, so it never runs an answer: we treat it as text, and only the grader's
process runs it. The feedback may quote the answer, so we show everything here as plain text, never Markdown or HTML.
"""

from __future__ import annotations

import contextlib
import functools
import html
from typing import TYPE_CHECKING, Any

import marimo as mo

from softscope._text import Text
from softscope.lab import progress
from softscope.lab.homework import IDS, LIMITS, Exercise, Quiz, UnsupportedError, find, grade
from softscope.lab.homework.progress import ExerciseProgress
from softscope.lab.homework.quiz import LETTERS
from softscope.lab.homework.sandbox.messages import printable
from softscope.lab.state_folder import HOMEWORK

if TYPE_CHECKING:
    import pathlib

    from softscope.lab.homework import Grade
    from softscope.lab.page import Page

EXERCISE = Text(zh="练习 {number}：{title}", en="Exercise {number}: {title}")
GRADED = Text(zh="离开编辑框后，答案会自动批改。", en="Your answer is graded when you leave the editor.")
HINT = Text(zh="提示 {place}", en="Hint {place}")
PASSED = Text(zh="通过了！", en="Passed!")
NOT_YET = Text(zh="还没有通过：", en="Not yet:")
PRINTED = Text(zh="它打印了：", en="It printed:")
ALL_PASSED = Text(zh="{all} 道练习全部通过，恭喜！", en="You have passed all {all} exercises. Congratulations!")
UNSUPPORTED = Text(
    zh="答案只能在 Linux 和 macOS 上批改，那里可以限制进程。",
    en="Answers can be graded only on Linux and macOS, where processes can be restricted.",
)
LINES = 8  # how much of an answer's output we show
_unkept: dict[pathlib.Path, str] = {}  # answers we could not write yet, kept until the lab exits


def editor(page: Page, number: int) -> Any:
    """Return the answer field, filled with the last answer: code, graded when the field loses focus, or choices."""
    exercise, lang = find(str(number)), page.lang
    kept = _kept(exercise.id)
    if isinstance(exercise, Exercise):
        return mo.ui.code_editor(kept or exercise.starter.of(lang), language="python", min_height=180)
    letters = kept if len(kept) == len(exercise.questions) else " " * len(exercise.questions)
    questions = []
    for question, letter in zip(exercise.questions, letters, strict=True):
        says = {f"{a}. {choice.says.of(lang)}": a for a, choice in zip(LETTERS, question.choices, strict=False)}
        questions.append(mo.ui.radio(says, value=next((name for name, a in says.items() if a == letter), None)))
    return mo.ui.array(questions)


def shown(page: Page, number: int, written: Any) -> Any:
    """Show the task, the answer field, and hints from a nudge to nearly the solution."""
    exercise, lang = find(str(number)), page.lang
    title = EXERCISE.of(lang).format(number=number, title=exercise.title.of(lang))
    parts: list[Any] = [mo.Html(f'<h3 class="lab-exercise">{html.escape(title)}</h3>'), _plain(exercise.task.of(lang))]
    if isinstance(exercise, Quiz):
        for place, (question, choices) in enumerate(zip(exercise.questions, written, strict=True), 1):
            parts += [_plain(f"{place}. {question.asks.of(lang)}"), choices]
    else:
        parts += [written, mo.Html(f'<p class="lab-meta">{GRADED.of(lang)}</p>')]
    hints = {
        HINT.of(lang).format(place=i): mo.lazy(functools.partial(hint, page, number, i))
        for i in range(1, len(exercise.hints) + 1)
    }
    return mo.vstack([*parts, mo.accordion(hints)])


def hint(page: Page, number: int, place: int) -> Any:
    """Return hint number `place`, from 1. It is built only when somebody opens it, so it counts as read."""
    exercise = find(str(number))
    homework().read(exercise.id, place)
    return _plain(exercise.hints[place - 1].of(page.lang))


def graded(page: Page, number: int, written: Any) -> Any:
    """Show the grader's feedback on the current answer; show nothing if the answer is untouched."""
    exercise, lang = find(str(number)), page.lang
    if isinstance(exercise, Quiz):
        answer = "".join(written.value) if all(written.value) else ""
    else:
        answer = written.value if written.value.strip() != exercise.starter.of(lang).strip() else ""
    if not answer.strip():
        return mo.Html("")
    _keep(exercise.id, answer)
    try:
        found = grade(exercise.id, answer, lang=lang)
    except UnsupportedError:
        return mo.callout(_plain(UNSUPPORTED.of(lang)), kind="warn")
    homework().graded(exercise.id, found.passed)
    return mo.callout(_told(page, found), "success" if found.passed else "warn")


def _told(page: Page, found: Grade) -> Any:
    lang = page.lang
    if found.passed:
        text = f"<strong>{PASSED.of(lang)}</strong>{_paragraphs(found.notice)}"
        if passed() == len(IDS):
            text += _paragraphs(ALL_PASSED.of(lang).format(all=len(IDS)))
    else:
        items = "".join(f"<li>{html.escape(message)}</li>" for message in found.messages)
        text = f"<strong>{NOT_YET.of(lang)}</strong><ul>{items}</ul>"
    if found.printed:
        lines = "\n".join(printable(line) for line in found.printed.splitlines()[:LINES])
        text += f"{PRINTED.of(lang)}<pre>{html.escape(lines)}</pre>"
    return mo.Html(f'<div class="lab-told">{text}</div>')


def _paragraphs(text: str) -> str:
    """Convert plain text to HTML, keeping its line breaks."""
    return "".join(f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>" for part in text.split("\n\n"))


def _plain(text: str) -> Any:
    """Show plain text as paragraphs."""
    return mo.Html(_paragraphs(text))


def homework() -> ExerciseProgress:
    """Return the current progress, shared with `softscope homework`; if the lab saves none, return an empty one."""
    folder = _folder()
    if folder is None:
        return ExerciseProgress()
    kept = _progress(folder / HOMEWORK)
    kept.refresh()
    return kept


@functools.cache
def _progress(path: pathlib.Path) -> ExerciseProgress:
    """Return one instance for all pages: it remembers what it could not write, and writes it once that works again."""
    return ExerciseProgress(path)


def passed() -> int:
    """Count the exercises the learner has passed."""
    return homework().passed


def _folder() -> pathlib.Path | None:
    path = progress.current().path
    return None if path is None else path.parent


def _kept(name: str) -> str:
    """Return the learner's answer as last graded."""
    folder = _folder()
    if folder is None:
        return ""
    path = folder / "answers" / name
    if path in _unkept:
        return _unkept[path]
    with contextlib.suppress(OSError, UnicodeError), path.open(encoding="utf-8") as stream:
        return stream.read(LIMITS.source)
    return ""


def _keep(name: str, answer: str) -> None:
    folder = _folder()
    if folder is not None and len(answer) <= LIMITS.source:
        _unkept[folder / "answers" / name] = answer
        for path, text in list(_unkept.items()):  # this one, and any that failed to write before
            with contextlib.suppress(OSError, UnicodeError):  # a full disk must not stop a lesson
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                _unkept.pop(path, None)
