"""Homework as text: the list, a task, a grade, hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli.layout import pad, width
from softscope.cli.problems import shown
from softscope.lab import homework
from softscope.lab.homework import Exercise
from softscope.lab.homework.quiz import LETTERS
from softscope.lab.homework.sandbox.messages import printable

if TYPE_CHECKING:
    from softscope.cli.console import Console
    from softscope.lab.homework import Grade, Quiz
    from softscope.lab.homework.progress import ExerciseProgress
    from softscope.lab.homework.quiz import Question

_STYLES = {"new": "dim", "tried": "caution", "skipped": "dim", "passed": "code"}
_PRINTED = 8  # lines of an answer's output


def catalogue(kept: ExerciseProgress, console: Console) -> None:
    """Print one line per exercise: number, title, minutes, state; below it the name to type."""
    titles = [exercise.title.of(console.lang) for exercise in homework.EXERCISES]
    columns = max(map(width, titles)) + 2
    for number, (exercise, title) in enumerate(zip(homework.EXERCISES, titles, strict=True), 1):
        state = kept.state(exercise.id)
        minutes = console.say("homework.minutes", minutes=exercise.minutes)
        told = console.paint(console.say(f"homework.state.{state}"), _STYLES[state])
        line = f"{number}  {console.paint(title, 'bold')}{' ' * (columns - width(title))}{pad(minutes, 9)}{told}"
        console.write(line.rstrip())
        console.write("   " + console.paint(exercise.id, "dim"))
    console.write()
    console.write(console.say("homework.count", passed=kept.passed, all=len(homework.IDS)))


def onwards(kept: ExerciseProgress, console: Console) -> None:
    """Show the next exercise and how to start it, or say that all are done."""
    exercise = kept.next()
    if exercise is None:
        console.paragraph(console.say("homework.finish", all=len(homework.IDS)), "")
        return
    number = homework.number(exercise)
    console.write(console.say("homework.next", title=f"{number} · {exercise.title.of(console.lang)}"))
    action = "start" if isinstance(exercise, Exercise) else "check"
    console.write("  " + console.paint(f"softscope homework {action} {number}", "code"))


def task(exercise: Exercise | Quiz, console: Console) -> None:
    """Print the task, and what to do next."""
    number = homework.number(exercise)
    title = exercise.title.of(console.lang)
    head = console.say("homework.head", number=number, all=len(homework.IDS), title=title)
    console.write(console.paint(head, "bold"))
    console.write()
    for paragraph in exercise.task.of(console.lang).split("\n"):
        if paragraph:
            console.paragraph(paragraph)
        else:
            console.write()
    console.write()
    if isinstance(exercise, Exercise):
        console.paragraph(console.say("homework.asked", functions=", ".join(exercise.functions)), "")
        console.paragraph(console.say("homework.written", file=exercise.file), "")
    else:
        for place, asked in enumerate(exercise.questions, 1):
            question(place, asked, console)
            console.write()
        console.paragraph(console.say("homework.quiz.how"), "")
    console.write("  " + console.paint(f"softscope homework check {number}", "code"))


def question(place: int, asked: Question, console: Console) -> None:
    """Print a question and its choices."""
    console.paragraph(asked.asks.of(console.lang), f"{place}. ", "   ")
    for letter, choice in zip(LETTERS, asked.choices, strict=False):
        console.paragraph(choice.says.of(console.lang), f"   {letter}) ", "      ")


def result(exercise: Exercise | Quiz, grade: Grade, console: Console) -> None:
    """Print "passed" and what to notice, or what is broken and how to continue."""
    title = exercise.title.of(console.lang)
    key, style = ("homework.passed", "code") if grade.passed else ("homework.not_yet", "negative")
    console.write(console.paint(console.say(key, title=title), style))
    for message in grade.messages:
        console.paragraph(printable(message), "  - ", "    ")
    if grade.printed:
        console.write(console.say("homework.printed"))
        for line in grade.printed.splitlines()[:_PRINTED]:
            console.write("  | " + shown(line))
    if isinstance(exercise, Exercise):
        console.write(
            console.paint(console.say("homework.seed", seconds=f"{grade.seconds:.2f}", seed=grade.seed), "dim")
        )
    if grade.passed:
        console.paragraph(console.say("homework.notice", notice=grade.notice), "")
    else:
        console.write(console.say("homework.hint.more", command=f"softscope homework hint {homework.number(exercise)}"))


def hints(exercise: Exercise | Quiz, count: int, console: Console) -> None:
    """Print the first few hints, as many as asked for."""
    whole = len(exercise.hints)
    for place, hint in enumerate(exercise.hints[:count], 1):
        console.paragraph(console.say("homework.hint", place=place, all=whole, hint=hint.of(console.lang)), "", "  ")
    if count == whole:
        console.write(console.paint(console.say("homework.hint.last"), "dim"))
