"""A multiple-choice question; each choice has the reason why it is right or wrong."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softscope._text import Lang, Text
from softscope.lab.homework.exercise import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

LETTERS = "abcdef"
_COUNT = Text(
    zh="有 {wanted} 道题，请给出 {wanted} 个字母，如 {example}；收到了 {came} 个。",
    en="There are {wanted} questions, so give {wanted} letters, such as {example}; got {came}.",
)
_LETTER = Text(zh="第 {place} 题没有选项 {letter}。", en="Question {place} has no choice {letter}.")
_WRONG = Text(zh="第 {place} 题，{letter}：{reason}", en="Question {place}, {letter}: {reason}")


@dataclass(frozen=True)
class Choice:
    """One choice, and why it is right or wrong, without naming the right one."""

    says: Text
    reason: Text
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question, its choices, and a computation that proves the right one."""

    asks: Text
    choices: tuple[Choice, ...]
    proof: Callable[[], bool]

    @property
    def right(self) -> str:
        """Return the right choice's letter."""
        return LETTERS[[choice.right for choice in self.choices].index(True)]


@dataclass(frozen=True)
class Quiz:
    """An exercise without code: questions answered by letters."""

    id: str
    title: Text
    task: Text
    questions: tuple[Question, ...]
    hints: tuple[Text, ...]
    notice: Text
    minutes: int = 10


def mark(quiz: Quiz, answers: str, lang: Lang) -> list[Problem]:
    """Return a problem, with the reason, for each wrong answer; any separator, or none, may stand between letters.

    A file may say "1: b" line by line; anything after # is a comment.
    """
    text = re.sub(r"#.*", "", unicodedata.normalize("NFKC", answers).lower())  # Ａ, as Chinese keyboards type it, is a
    letters = re.findall(r"[a-z]", text)
    if len(letters) != len(quiz.questions):
        example = LETTERS[: len(quiz.questions)]
        sentence = _COUNT.of(lang).format(wanted=len(quiz.questions), came=len(letters), example=example)
        return [Problem("count", sentence)]
    problems = []
    for place, (question, letter) in enumerate(zip(quiz.questions, letters, strict=True), 1):
        i = LETTERS.find(letter)
        if not 0 <= i < len(question.choices):
            problems.append(Problem(f"choice-{place}", _LETTER.of(lang).format(place=place, letter=letter)))
        elif not question.choices[i].right:
            reason = question.choices[i].reason.of(lang)
            problems.append(
                Problem(f"question-{place}", _WRONG.of(lang).format(place=place, letter=letter, reason=reason))
            )
    return problems
