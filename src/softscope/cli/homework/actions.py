"""The actions of `softscope homework`: (name, options, progress, console) → exit code."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from softscope.cli.homework import files, text
from softscope.cli.homework.asking import letters
from softscope.cli.problems import UsageError, shown
from softscope.lab import homework
from softscope.lab.homework import Exercise, Quiz

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.lab.homework.progress import ExerciseProgress

PASSED, NOT_YET = 0, 1


def list(_: str | None, __: Any, kept: ExerciseProgress, console: Console) -> int:  # noqa: A001 - named as it is typed
    """List all exercises with their state, and the next one."""
    text.catalogue(kept, console)
    text.onwards(kept, console)
    return PASSED


def start(name: str | None, _: Any, kept: ExerciseProgress, console: Console) -> int:
    """Write an exercise's file and explain the task."""
    exercise = _chosen(name, kept)
    if isinstance(exercise, Exercise):
        files.write(exercise, console)
    text.task(exercise, console)
    return PASSED


def check(name: str | None, options: Any, kept: ExerciseProgress, console: Console) -> int:
    """Grade a file, or the letters of a quiz."""
    path = pathlib.Path(name) if name is not None and name.endswith(".py") else None
    exercise = files.exercise_of(path) if path is not None else _chosen(name, kept)
    if isinstance(exercise, Quiz):
        source = options.answers if options.answers is not None else letters(exercise, console)
    elif options.answers is not None:
        raise UsageError("homework.answers.needless", title=exercise.title.of(console.lang))
    else:
        source = files.read(path or pathlib.Path(exercise.file), exercise)
    try:
        grade = homework.grade(exercise.id, source, seed=options.seed, lang=console.lang)
    except homework.UnsupportedError:
        raise UsageError("homework.unsupported") from None
    kept.graded(exercise.id, grade.passed)
    text.result(exercise, grade, console)
    if grade.passed:
        text.onwards(kept, console)
    return PASSED if grade.passed else NOT_YET


def hint(name: str | None, _: Any, kept: ExerciseProgress, console: Console) -> int:
    """Show one more hint, below the earlier ones."""
    exercise = _chosen(name, kept)
    text.hints(exercise, kept.hint(exercise.id, len(exercise.hints)), console)
    return PASSED


def next(name: str | None, options: Any, kept: ExerciseProgress, console: Console) -> int:  # noqa: A001 - named as it is typed
    """Show the next exercise; with --skip, first set one aside for later."""
    if options.skip:
        exercise = _chosen(name, kept)
        kept.skip(exercise.id)
        console.write(console.say("homework.skipped", title=exercise.title.of(console.lang)))
    elif name is not None:
        raise UsageError("homework.several", value=shown(name))
    text.onwards(kept, console)
    return PASSED


def _chosen(name: str | None, kept: ExerciseProgress) -> Exercise | Quiz:
    """Return the named exercise, or the next one."""
    if name is None:
        exercise = kept.next()
        if exercise is None:
            raise UsageError("homework.all_passed")
        return exercise
    try:
        return homework.find(name)
    except KeyError:
        known = ", ".join(homework.IDS)
        raise UsageError("homework.unknown", value=shown(name), all=len(homework.IDS), known=known) from None
