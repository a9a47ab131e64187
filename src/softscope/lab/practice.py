"""An exercise inside a lesson: the task, the answer field with its Check button, the grader's feedback, hints.

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
from softscope.lab.homework import IDS, LIMITS, Exercise, Quiz, UnsupportedError, find, grade, number
from softscope.lab.homework.progress import ExerciseProgress
from softscope.lab.homework.quiz import LETTERS
from softscope.lab.homework.sandbox.messages import printable
from softscope.lab.state_folder import HOMEWORK

if TYPE_CHECKING:
    import pathlib

    from softscope._text import Lang
    from softscope.lab.homework import Grade
    from softscope.lab.page import Page

EXERCISE = Text(zh="练习 {number}：{title}", en="Exercise {number}: {title}")
CHECK = Text(zh="检查", en="Check")
BEFORE = Text(zh="✓ 这道练习你已经通过了。", en="✓ You have already passed this exercise.")
UNTOUCHED = Text(
    zh="编辑框里还是题目给的代码。先写上你的答案，再按“检查”。",
    en="The editor still holds the code you were given. Write your answer, then press Check.",
)
UNANSWERED = Text(zh="还有问题没有选：{places}。", en="Some questions have no answer yet: {places}.")
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


def editor(page: Page, name: str | int) -> Any:
    """Return the answer field, filled with the last answer: code or choices. Its Check button sends the answer."""
    exercise, lang = find(str(name)), page.lang
    kept = _kept(exercise.id)
    if isinstance(exercise, Exercise):
        field: Any = mo.ui.code_editor(kept or exercise.starter.of(lang), language="python", min_height=180)
        return field.form(submit_button_label=CHECK.of(lang))
    letters = kept if len(kept) == len(exercise.questions) else " " * len(exercise.questions)
    fields, asked = {}, ""
    for place, (question, letter) in enumerate(zip(exercise.questions, letters, strict=True), 1):
        says = {f"{a}. {choice.says.of(lang)}": a for a, choice in zip(LETTERS, question.choices, strict=False)}
        fields[f"q{place}"] = mo.ui.radio(says, value=next((text for text, a in says.items() if a == letter), None))
        asks = _paragraphs(f"{place}. {question.asks.of(lang)}").replace("{", "{{").replace("}", "}}")
        asked += f"{asks}{{q{place}}}"
    return mo.Html(asked).batch(**fields).form(submit_button_label=CHECK.of(lang))


def shown(page: Page, name: str | int, written: Any) -> Any:
    """Show the task and the answer field, and get the hints ready, which `graded` puts below its verdict."""
    exercise, lang = find(str(name)), page.lang
    title = EXERCISE.of(lang).format(number=number(exercise), title=exercise.title.of(lang))
    # The hints are made here, in a cell that never runs again: a check must not close the one somebody is reading.
    page.hints[exercise.id] = mo.accordion(
        {
            HINT.of(lang).format(place=i): mo.lazy(functools.partial(hint, page, exercise.id, i))
            for i in range(1, len(exercise.hints) + 1)
        },
        multiple=True,
    )
    head = mo.Html(f'<h3 class="lab-exercise">{html.escape(title)}</h3>')
    return mo.vstack([head, _plain(exercise.task.of(lang)), written])


def hint(page: Page, name: str | int, place: int) -> Any:
    """Return hint number `place`, from 1. It is built only when somebody opens it, so it counts as read."""
    exercise = find(str(name))
    homework().read(exercise.id, place)
    return _plain(exercise.hints[place - 1].of(page.lang))


def graded(page: Page, name: str | int, written: Any) -> Any:
    """Show the verdict on the answer that was sent, and below it hints from a nudge to nearly the solution."""
    exercise = find(str(name))
    return mo.vstack([_verdict(page, exercise, written.value), page.hints[exercise.id]])


def _verdict(page: Page, exercise: Exercise | Quiz, sent: Any) -> Any:
    """Grade what the Check button sent; None if nobody has pressed it yet."""
    lang = page.lang
    if sent is None:
        passed_before = homework().state(exercise.id) == "passed"
        return mo.Html(f'<p class="lab-meta">{BEFORE.of(lang)}</p>' if passed_before else "")
    missing = _missing(exercise, sent, lang)
    if missing:
        return mo.callout(_plain(missing), kind="neutral")
    answer = "".join(sent.values()) if isinstance(exercise, Quiz) else sent
    _keep(exercise.id, answer)
    try:
        found = grade(exercise.id, answer, lang=lang)
    except UnsupportedError:
        return mo.callout(_plain(UNSUPPORTED.of(lang)), kind="warn")
    homework().graded(exercise.id, found.passed)
    return mo.callout(_told(page, found), "success" if found.passed else "warn")


def _missing(exercise: Exercise | Quiz, sent: Any, lang: Lang) -> str:
    """Say what an answer lacks before it is worth grading; "" if nothing."""
    if isinstance(exercise, Quiz):
        places = ", ".join(name[1:] for name, letter in sent.items() if letter is None)
        return UNANSWERED.of(lang).format(places=places) if places else ""
    return UNTOUCHED.of(lang) if sent.strip() in ("", exercise.starter.of(lang).strip()) else ""


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
