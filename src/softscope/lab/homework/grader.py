"""Grade an answer: its text goes in; out comes "passed", or what it breaks."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softscope._text import Lang
from softscope.lab.homework.answer_process import Answer, RaisedError, StoppedError
from softscope.lab.homework.catalogue import find
from softscope.lab.homework.exercise import Problem
from softscope.lab.homework.limits import LIMITS, Limits
from softscope.lab.homework.quiz import Quiz, mark
from softscope.lab.homework.sentences import MISSING, stopped, unread
from softscope.lab.homework.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softscope.lab.homework.exercise import Exercise

_MOST = 3  # problems reported at once: more would bury the first


@dataclass(frozen=True)
class Grade:
    """The result of grading an answer.

    Attributes:
        passed: whether all properties hold.
        messages: sentences in the chosen language; each names a broken property and shows the input.
        seconds: how long grading took.
        seed: the seed of the random inputs; the same seed reproduces them.
        broken: the stable names of the broken properties, in the order of the messages.
        printed: the start of what the answer printed.
        notice: what a right answer shows; "" until it passes.
    """

    passed: bool
    messages: tuple[str, ...]
    seconds: float
    seed: int
    broken: tuple[str, ...] = ()
    printed: str = ""
    notice: str = ""


def grade(
    exercise_id: str, source: str, *, seed: int | None = None, lang: Lang = "en", limits: Limits = LIMITS
) -> Grade:
    r"""Run an answer's text in a separate process and test it against the exercise's properties.

    A quiz also takes its answers as text, one letter per question: "b, a, c".

    >>> wrong = grade("softmax", "import numpy as np\ndef softmax(x):\n    return x / x.sum()", seed=1)
    >>> wrong.passed, wrong.broken[0]
    (False, 'finite')
    """
    exercise = find(exercise_id)
    seed = secrets.randbelow(10**6) if seed is None else seed
    started = time.perf_counter()
    printed = b""
    if isinstance(exercise, Quiz):
        problems = mark(exercise, source, lang)
    elif len(source) > limits.source:
        problems = [Problem("long", stopped("long", {"most": limits.source}).of(lang))]
    else:
        problems, printed = _problems(exercise, source, seed, lang, limits)
    passed = not problems
    return Grade(
        passed,
        tuple(problem.sentence for problem in problems),
        time.perf_counter() - started,
        seed,
        tuple(problem.name for problem in problems),
        printed.decode("utf-8", "replace"),
        exercise.notice.of(lang) if passed else "",
    )


def _problems(exercise: Exercise, source: str, seed: int, lang: Lang, limits: Limits) -> tuple[list[Problem], bytes]:
    """Return what is wrong with the answer, and what it printed."""
    answer = Answer(source, may_import=exercise.may_import, limits=limits)
    found: list[Problem] = []
    try:
        with answer, np.errstate(all="ignore"):  # a wrong answer's numbers may overflow any check
            for problem in checked(exercise, answer, seed, lang):
                found.append(problem)
                if len(found) == _MOST:
                    break
    except RaisedError as error:  # while loading the file itself
        found.append(Problem("raised", unread(error).of(lang)))
    except StoppedError as stop:
        found.append(Problem(stop.key, stopped(stop.key, stop.values).of(lang)))
    return found, answer.printed


def checked(exercise: Exercise, answer: Answer, seed: int, lang: Lang) -> Iterator[Problem]:
    """Yield what a running answer breaks, check by check; without its functions, only that."""
    missing = [name for name in exercise.names if name not in answer.functions]
    if missing:
        yield Problem("missing", MISSING.of(lang).format(names=", ".join(missing)))
        return
    for check in exercise.checks:
        yield from check(Trial(answer, seed, lang))
