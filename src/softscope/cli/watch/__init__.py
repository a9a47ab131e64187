"""`softscope watch`: follow a run from another terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope.cli import record
from softscope.cli.commands import HELP, LANG, Arguments, Command, Option

if TYPE_CHECKING:
    from softscope.cli.console import Console

COMMAND = Command(
    name="watch",
    usage="softscope watch RECORD [--once] [--fail-on SEVERITY] [--lang zh|en]",
    arguments=(("RECORD", "record.argument"),),
    options=(
        Option(("--once",), "watch.option.once"),
        Option(("--fail-on",), "watch.option.fail_on", "SEVERITY"),
        LANG,
        HELP,
    ),
    examples=(
        ("softscope watch run.db", "watch.example.follow"),
        ("softscope watch run.db --once", "watch.example.once"),
        ("softscope watch run.db | tee run.log", "watch.example.pipe"),
        ("softscope watch run.db --fail-on finding", "watch.example.fail"),
    ),
)


def run(arguments: Arguments, console: Console) -> int:
    """Show the record once, or follow it until its run ends; return the exit code."""
    from softscope.cli.checkup import settings
    from softscope.cli.watch.following import Follower

    options = arguments.options
    (path,) = record.names(arguments.rest, ("RECORD",), "watch")
    wanted = settings.found(options.fail_on, None)
    follower = Follower(path, console, None if options.fail_on is None else wanted.fail_on, wanted.mute)
    if options.once:
        return follower.once()
    try:
        return follower.follow()
    except KeyboardInterrupt:  # Ctrl-C is how you stop watching: not an error, unless somebody waits for a verdict
        if options.fail_on is not None:
            raise
        console.write()
        return 0
