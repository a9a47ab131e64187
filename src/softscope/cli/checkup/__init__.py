"""`softscope checkup`: the doctor's verdict on a recorded run, a model, or the two built-in patients."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option
from softscope.cli.console import forget
from softscope.cli.problems import UsageError, shown
from softscope.cli.record import spoken

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from softscope._text import Text
    from softscope.cli.checkup.models import Treat
    from softscope.cli.checkup.settings import Settings
    from softscope.cli.console import Console
    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.read.head_trial import Trials
    from softscope.doctor.read.snapshot import History

FOUND = 1  # exit code for a finding
_FORMATS = ("text", "json", "html")


def _format(value: str) -> str:
    if value not in _FORMATS:
        raise UsageError("checkup.format.unknown", value=shown(value))
    return value


COMMAND = Command(
    name="checkup",
    usage="softscope checkup [PATH] [OPTIONS]",
    arguments=(("PATH", "checkup.argument.path"),),
    options=(
        Option(("--format",), "checkup.option.format", "FORMAT", _format, "text"),
        Option(("--text",), "checkup.option.text", "TEXT"),
        Option(("--text-file",), "checkup.option.text_file", "FILE", pathlib.Path),
        Option(("--batch",), "checkup.option.batch", "FILE", pathlib.Path),
        Option(("--report",), "checkup.option.report", "FILE", pathlib.Path),
        Option(("--fail-on",), "checkup.option.fail_on", "SEVERITY"),
        Option(("--exit-zero",), "checkup.option.exit_zero"),
        Option(("--mute",), "checkup.option.mute", "CODES"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope checkup", "checkup.example.patients"),
        ("softscope checkup run.db --report checkup.html", "checkup.example.record"),
        ("softscope checkup models/small", "checkup.example.folder"),
        ("softscope checkup mymodel:build", "checkup.example.function"),
        ("softscope checkup run.db --fail-on tip --format json", "checkup.example.fail"),
    ),
)


def run(arguments: Arguments, console: Console) -> int:
    """Judge, write the result as requested, and return the exit code that the findings call for."""
    from softscope.cli.checkup import demo, models, settings, writing
    from softscope.doctor.diagnosis import diagnose

    options = arguments.options
    if len(arguments.rest) > 1:
        raise UsageError("checkup.several", count=len(arguments.rest))
    wanted = settings.found(options.fail_on, options.mute)
    if options.report is not None:
        writing.check(options.report)
    patients = not arguments.rest
    if patients:
        models.only_for_folders(options, "")
        diagnoses = demo.run(console, wanted.mute, options.format == "text", options.report)
    else:
        history, title, trials, treat = _history(arguments.rest[0], options, console)
        diagnosis = diagnose(history, title, mute=wanted.mute, trials=trials)
        diagnoses = [diagnosis if treat is None else treat(diagnosis)]
        _show(diagnoses, options.format, console)
        if options.report is not None:
            writing.page_to(options.report, diagnoses, console, tell=options.format == "text")
    if patients and options.format != "text":
        _show(diagnoses, options.format, console)
    return _code(diagnoses, wanted, options.exit_zero, patients and options.fail_on is None)


def _show(diagnoses: Sequence[Diagnosis], form: str, console: Console) -> None:
    """Write the diagnoses; a reader that has seen enough, as in `| head -1`, does not change the exit code."""
    from softscope.cli.checkup import writing

    try:
        writing.show(diagnoses, form, console)
    except BrokenPipeError:
        forget(console.stream)


def _code(diagnoses: Sequence[Diagnosis], wanted: Settings, exit_zero: bool, shown_only: bool) -> int:
    """Return the exit code. The built-in patients are sick on purpose, so they fail only users who asked for that."""
    failed = any(diagnosis.fails(wanted.fail_on) for diagnosis in diagnoses)
    return FOUND if failed and not exit_zero and not shown_only else 0


def _history(
    word: str, options: Namespace, console: Console
) -> tuple[History, Text | str, Trials | None, Treat | None]:
    """Load the history: a folder holds a model, a file is a record, anything else with a colon is module:function."""
    from softscope.cli.checkup import models
    from softscope.doctor.record import read_record

    path = pathlib.Path(word)
    if os.path.isdir(word):  # unlike a Path, it answers for names that no file can have, too
        return models.titled(models.of_folder(path, options, console), word)
    models.only_for_folders(options, word)
    if os.path.exists(word):
        with spoken():
            history = read_record(path)
        if not history.snapshots:
            raise UsageError("checkup.record.none", path=shown(word))
        return history, "", None, None
    if ":" in word:
        return models.titled(models.of_function(word, console), word)
    raise UsageError("checkup.missing", path=shown(word))
