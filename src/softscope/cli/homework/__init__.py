"""`softscope homework`: eight exercises in files, graded in a separate process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option, seed
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console

_ACTIONS = ("list", "start", "check", "hint", "next")


COMMAND = Command(
    name="homework",
    usage="softscope homework list|start|check|hint|next [EXERCISE] [OPTIONS]",
    arguments=(
        ("list|start|check|…", "homework.argument.action"),
        ("EXERCISE", "homework.argument.exercise"),
    ),
    options=(
        Option(("--answers",), "homework.option.answers", "LETTERS"),
        Option(("--seed",), "homework.option.seed", "N", seed),
        Option(("--skip",), "homework.option.skip"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope homework list", "homework.example.list"),
        ("softscope homework start 1", "homework.example.start"),
        ("softscope homework check 1", "homework.example.check"),
    ),
)


def run(arguments: Arguments, console: Console) -> int:
    """Do what the first word says; return 0, or 1 if an answer does not pass yet."""
    from softscope.cli.homework import actions
    from softscope.lab.homework import progress
    from softscope.lab.state_folder import HOMEWORK, state_folder

    action, name = _divided(arguments.rest)
    _refuse_options(action, arguments.options)
    kept = progress.ExerciseProgress(state_folder() / HOMEWORK)
    if kept.spoilt is not None:
        console.paragraph(console.say("homework.spoilt", path=shown(kept.spoilt)), "")
    code: int = getattr(actions, action)(name, arguments.options, kept, console)
    if kept.trouble:
        console.paragraph(console.say("homework.unkept", reason=kept.trouble), "")
    return code


def _divided(words: list[str]) -> tuple[str, str | None]:
    """Return the action and, if named, the exercise."""
    if not words:
        raise UsageError("homework.action.none", known=", ".join(_ACTIONS))
    if words[0] not in _ACTIONS:
        raise UsageError("homework.action.unknown", value=shown(words[0]), known=", ".join(_ACTIONS))
    if len(words) > 2:
        raise UsageError("homework.several", value=shown(words[2]))
    if len(words) == 2 and words[0] == "list":
        raise UsageError("homework.list.alone", value=shown(words[1]))
    return words[0], words[1] if len(words) == 2 else None


def _refuse_options(action: str, options: Any) -> None:
    for name, given, owner in (
        ("--answers", options.answers is not None, "check"),
        ("--seed", options.seed is not None, "check"),
        ("--skip", options.skip, "next"),
    ):
        if given and action != owner:
            raise UsageError("homework.option.elsewhere", option=name, action=owner)
