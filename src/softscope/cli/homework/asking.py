"""The quiz at the terminal: a question, its choices, a letter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from softscope.cli.homework.text import question
from softscope.cli.problems import UsageError
from softscope.lab.homework.quiz import LETTERS

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.lab.homework import Quiz


def letters(quiz: Quiz, console: Console) -> str:
    """Ask the learner for each letter in turn, if there is somebody to answer."""
    if sys.stdin is None or not sys.stdin.isatty() or console.stream is None:
        example = LETTERS[: len(quiz.questions)]
        raise UsageError("homework.answers.needed", count=len(quiz.questions), example=example)
    given = []
    for place, asked in enumerate(quiz.questions, 1):
        question(place, asked, console)
        given.append(_letter(LETTERS[: len(asked.choices)], console))
        console.write()
    return ",".join(given)


def _letter(allowed: str, console: Console) -> str:
    assert console.stream is not None
    while True:
        console.stream.write("  " + console.say("homework.quiz.ask", letters="/".join(allowed)))
        console.stream.flush()
        line = sys.stdin.readline()
        if not line:  # end of input: same as Ctrl-C
            raise KeyboardInterrupt
        letter = line.strip().lower()
        if len(letter) == 1 and letter in allowed:
            return letter
