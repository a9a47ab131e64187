"""`softscope checkup`: what the doctor says of a recorded run, or of the two built-in patients."""

from __future__ import annotations

import importlib
import pathlib
from typing import TYPE_CHECKING

from softscope.cli.commands import HELP, LANG, Arguments, Command, Option
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softscope.cli.checkup.settings import Settings
    from softscope.cli.console import Console
    from softscope.doctor.diagnosis import Diagnosis

FOUND = 1  # the exit code for a finding
_FORMATS = ("text", "json", "html")


def _format(value: str) -> str:
    if value not in _FORMATS:
        raise UsageError("checkup.format.unknown", value=shown(value))
    return value


COMMAND = Command(
    name="checkup",
    usage="softscope checkup [RECORD] [OPTIONS]",
    arguments=(("RECORD", "checkup.argument.record"),),
    options=(
        Option(("--format",), "checkup.option.format", "FORMAT", _format, "text"),
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
        ("softscope checkup run.db --fail-on tip --format json", "checkup.example.fail"),
    ),
)


def run(arguments: Arguments, console: Console) -> int:
    """Judge, write it as asked, and end with the code that the findings ask for."""
    from softscope.cli.checkup import demo, settings, writing

    options = arguments.options
    if len(arguments.rest) > 1:
        raise UsageError("checkup.several", count=len(arguments.rest))
    wanted = settings.found(options.fail_on, options.mute)
    if options.report is not None:
        writing.check(options.report)
    patients = not arguments.rest
    if patients:
        diagnoses = demo.run(console, wanted.mute, options.format == "text", options.report)
    else:
        diagnoses = [_of_record(arguments.rest[0], wanted.mute)]
        writing.show(diagnoses, options.format, console)
        if options.report is not None:
            writing.page_to(options.report, diagnoses, console, tell=options.format == "text")
    if patients and options.format != "text":
        writing.show(diagnoses, options.format, console)
    return _code(diagnoses, wanted, options.exit_zero, patients and options.fail_on is None)


def _code(diagnoses: Sequence[Diagnosis], wanted: Settings, exit_zero: bool, shown_only: bool) -> int:
    """The built-in patients are sick on purpose: they fail nobody who has not asked."""
    failed = any(diagnosis.fails(wanted.fail_on) for diagnosis in diagnoses)
    return FOUND if failed and not exit_zero and not shown_only else 0


def _of_record(word: str, mute: Sequence[str]) -> Diagnosis:
    from softscope.doctor.diagnosis import diagnose

    path = pathlib.Path(word)
    if path.is_dir():
        raise UsageError("checkup.folder", path=shown(word))
    if not path.exists():
        raise UsageError("checkup.function" if ":" in word else "checkup.missing", path=shown(word))
    try:
        record = importlib.import_module("softscope.doctor.record")
    except ModuleNotFoundError:
        raise UsageError("checkup.records.absent") from None
    try:
        history = record.read(path)
    except (ValueError, OSError) as error:
        raise UsageError("checkup.unreadable", path=shown(word), reason=shown(error)) from None
    return diagnose(history, mute=mute)
