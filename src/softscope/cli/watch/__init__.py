"""`softscope watch`: follow a run from another terminal."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from typing import TYPE_CHECKING

from softscope.cli import record
from softscope.cli.commands import HELP, LANG, Arguments, Command, Option

if TYPE_CHECKING:
    import pathlib

    from softscope.cli.console import Console
    from softscope.doctor.record import News

COMMAND = Command(
    name="watch",
    usage="softscope watch RECORD [--once] [--lang zh|en]",
    arguments=(("RECORD", "record.argument"),),
    options=(Option(("--once",), "watch.option.once"), LANG, HELP),
    examples=(
        ("softscope watch run.db", "watch.example.follow"),
        ("softscope watch run.db --once", "watch.example.once"),
        ("softscope watch run.db | tee run.log", "watch.example.pipe"),
    ),
)

_PAUSE = 0.5  # seconds between two polls
_PATIENCE = 30.0  # seconds without news before we say so


def run(arguments: Arguments, console: Console) -> None:
    """Show the record once, or follow it until its run ends."""
    (path,) = record.names(arguments.rest, ("RECORD",), "watch")
    if arguments.options.once:
        _once(path, console)
        return
    try:
        follow = _in_place if _redraws(console) else _in_lines
        follow(path, console)
    except KeyboardInterrupt:  # Ctrl-C is how you stop watching: not an error
        console.write()


def _redraws(console: Console) -> bool:
    """Check that we can move the cursor, and that the terminal is wide enough for us to count its lines."""
    terminal = console.stream is not None and console.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return terminal and shutil.get_terminal_size((80, 24)).columns >= console.width


def _look(path: pathlib.Path, mark: int | None = None) -> News:
    from softscope.doctor.record import news

    with record.spoken():
        return news(path, mark)


def _once(path: pathlib.Path, console: Console) -> None:
    from softscope.cli.watch import table

    seen = _look(path)
    lines = table.frame(path, seen, seen.snapshots[-1] if seen.snapshots else None, console)
    for line in lines + ([] if seen.ended is None else table.end(seen.ended, console)):
        console.write(line)


def _in_place(path: pathlib.Path, console: Console) -> None:
    """Redraw the table of heads in place; if it does not fit, show only the worst sites."""
    from softscope.cli.watch import table

    assert console.stream is not None
    seen, last, drawn, news_at = _look(path), None, 0, time.monotonic()
    while True:
        last = seen.snapshots[-1] if seen.snapshots else last
        silent = time.monotonic() - news_at
        size = shutil.get_terminal_size((80, 24))
        now = dataclasses.replace(console, width=min(max(size.columns, 40), 100))
        lines = table.frame(path, seen, last, now, most=size.lines - 2)
        lines += table.waiting(silent, _PATIENCE, now) if seen.ended is None else table.end(seen.ended, now)
        console.stream.write((f"\x1b[{drawn}F" if drawn else "") + "\x1b[J")  # go to the first line and clear below
        for line in lines:
            now.write(line)
        console.stream.flush()
        drawn = len(lines)
        if seen.ended is not None:
            return
        time.sleep(_PAUSE)
        seen = _look(path, seen.mark)
        if seen.snapshots:
            news_at = time.monotonic()


def _in_lines(path: pathlib.Path, console: Console) -> None:
    """Print one line per snapshot, for pipes and files, where nothing can be redrawn."""
    from softscope.cli.watch import table

    seen = _look(path)
    while True:
        for snapshot in seen.snapshots:
            console.write(table.line(seen.sites, snapshot, console))
        if seen.ended is not None:
            for line in table.end(seen.ended, console):
                console.write(line)
            return
        if console.stream is not None:
            console.stream.flush()
        time.sleep(_PAUSE)
        seen = _look(path, seen.mark)
