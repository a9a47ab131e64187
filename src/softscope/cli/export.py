"""`softscope export`: write a record as CSV, JSON or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli import record
from softscope.cli.commands import HELP, LANG, Arguments, Command
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.cli.console import Console

COMMAND = Command(
    name="export",
    usage="softscope export RECORD FILE [--lang zh|en]",
    arguments=(("RECORD", "record.argument"), ("FILE", "export.argument.file")),
    options=(LANG, HELP),
    examples=(
        ("softscope export run.db run.csv", "export.example.csv"),
        ("softscope export run.db run.parquet", "export.example.parquet"),
    ),
)


def run(arguments: Arguments, console: Console) -> None:
    """Read the record and write the file."""
    from softscope.doctor.record import export, read_record
    from softscope.doctor.record.export import suffixes

    source, target = record.names(arguments.rest, ("RECORD", "FILE"), "export")
    if target.suffix.lower() not in suffixes():
        raise UsageError("export.suffix", path=shown(target), known=", ".join(suffixes()))
    with record.spoken():
        history = read_record(source)
    try:
        export(history, target)
    except ImportError:
        raise UsageError("export.missing", path=shown(target)) from None
    except OSError as error:
        raise UsageError(
            "export.unwritable", path=shown(target), reason=error.strerror or type(error).__name__
        ) from None
    console.write(
        console.say("export.done", path=shown(target), steps=len(history.snapshots), sites=len(history.sites))
    )
