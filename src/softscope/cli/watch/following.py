"""Looks at a record again and again, and says what is new."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from typing import TYPE_CHECKING, NamedTuple

from softscope.cli import record
from softscope.cli.console import forget
from softscope.cli.problems import UsageError, shown
from softscope.cli.watch import happenings, ranks, table
from softscope.doctor.events import Watch, at_least
from softscope.doctor.judge import checks
from softscope.doctor.read.head_trial import of_facts
from softscope.doctor.record import news, read_record

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Iterator, Sequence

    from softscope.cli.console import Console
    from softscope.doctor.events import Event
    from softscope.doctor.judge.checks import Severity
    from softscope.doctor.record import News

_PAUSE = 0.5  # seconds between two polls
_PATIENCE = 30.0  # seconds without news before we say so
FINE, FOUND = 0, 1  # exit codes


class _Reading(NamedTuple):
    shown: table.Shown
    events: Sequence[Event]


class Follower:
    """Follows one record.

    Args:
        path: the record.
        console: where to write.
        fail_on: the severity from which a finding ends the watch; None: none does.
        mute: checks to ignore.
    """

    def __init__(self, path: pathlib.Path, console: Console, fail_on: Severity | None, mute: tuple[str, ...]) -> None:
        self._path, self._console, self._fail_on, self._mute = path, console, fail_on, mute
        # Tips are told, too: without a trial, a head that seems to starve is only suspected.
        self._watch = Watch("informative" if fail_on == "informative" else "tip", mute)
        self._mark = 0
        self._last: table.Shown | None = None

    def once(self) -> int:
        """Show the newest readings and what there is to report."""
        seen = self._look()
        events = [event for reading in self._new(seen) for event in reading.events]
        self._write(table.frame(self._path, self._last, self._console))
        self._write(table.ranks(seen.facts, self._console))
        self._write(happenings.lines(events, self._console, self._console.width if self._redraws() else None))
        return self._end(seen)

    def follow(self) -> int:
        """Follow the run to its end, or to the first finding that is severe enough; return the exit code."""
        return self._in_place() if self._redraws() else self._in_lines()

    def _in_lines(self) -> int:
        """Write one line per reading, for pipes and files, where nothing can be redrawn."""
        lagging = ""
        while True:
            seen = self._look()
            for reading in self._new(seen):
                self._write(
                    [table.line(reading.shown, self._console), *happenings.lines(reading.events, self._console)]
                )
                if self._fails():
                    return self._failed()
            text, behind = ranks.sentence(seen.facts, self._console)
            if text != lagging and (behind or lagging):
                self._write([text])
            lagging = text if behind else ""
            if seen.over:
                return self._end(seen)
            time.sleep(_PAUSE)

    def _in_place(self) -> int:
        """Redraw the table of heads in place; if it does not fit, show only the worst sites. Events stay above it."""
        drawn, news_at = 0, time.monotonic()
        while True:
            seen = self._look()
            size = shutil.get_terminal_size((80, 24))
            now = dataclasses.replace(self._console, width=min(max(size.columns, 40), 100))
            above: list[str] = []
            failed = False
            for reading in self._new(seen):
                news_at = time.monotonic()
                above += happenings.lines(reading.events, now, now.width)
                failed = failed or self._fails()
            below = table.ranks(seen.facts, now)
            lines = table.frame(self._path, self._last, now, most=size.lines - 2 - len(below)) + below
            if not seen.over and not failed:
                lines += table.waiting(time.monotonic() - news_at, _PATIENCE, now)
            up = f"\x1b[{drawn}F" if drawn else ""
            self._write([f"{up}\x1b[J" + "\n".join(above + lines)])  # go to the first line and clear below
            drawn = len(lines)
            if failed:
                return self._failed()
            if seen.over:
                return self._end(seen)
            time.sleep(_PAUSE)

    def _redraws(self) -> bool:
        """Check that we can move the cursor, and that the terminal is wide enough for us to count its lines."""
        stream = self._console.stream
        terminal = stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        return terminal and shutil.get_terminal_size((80, 24)).columns >= self._console.width

    def _look(self) -> News:
        with record.spoken():
            return news(self._path, self._mark)

    def _new(self, seen: News) -> Iterator[_Reading]:
        """Judge what is new, reading by reading; of what was read before we came, only the last."""
        came_late, self._mark = self._mark == 0, seen.mark
        trials = of_facts(seen.facts.get("trials"))
        for i, snapshot in enumerate(seen.snapshots):
            self._watch.add(seen.sites, snapshot)
            if came_late and i + 1 < len(seen.snapshots):
                continue
            look = self._watch.judge(trials)
            self._last = table.Shown(seen.sites, snapshot, {} if look.view is None else look.view.states)
            yield _Reading(self._last, look.events)

    def _fails(self) -> bool:
        """Whether what was seen so far is severe enough."""
        tracker = self._watch.tracker
        # While we follow, we judge a digest of the run. `checkup` judges all of it, and the exit codes must agree.
        return self._fail_on is not None and tracker is not None and tracker.standing(self._fail_on) and self._found()

    def _found(self) -> bool:
        """Whether the run up to what is shown has a finding that is severe enough, as `checkup` judges it."""
        if self._fail_on is None or self._last is None:
            return False
        with record.spoken():
            history = read_record(self._path, part=-1)
        until = self._last.snapshot.step
        history = dataclasses.replace(history, snapshots=tuple(s for s in history.snapshots if s.step <= until))
        severe = at_least(self._fail_on)
        return any(result.kind in severe for result in checks.run(history, mute=self._mute))

    def _end(self, seen: News) -> int:
        """Say how the run ended, if it did, and whether there is a finding, if that was asked."""
        if seen.over:
            self._write(table.end(seen, self._console))
        if self._fail_on is None:
            return FINE
        if self._last is None:
            raise UsageError("checkup.record.none", path=shown(self._path))
        if self._found():
            return self._failed()
        self._write([self._console.say("watch.passed", severity=self._fail_on)])
        return FINE

    def _failed(self) -> int:
        self._write([self._console.say("watch.failed", severity=self._fail_on)])
        return FOUND

    def _write(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._console.write(line)
            if self._console.stream is not None:
                self._console.stream.flush()
        except BrokenPipeError:
            if self._fail_on is None:
                raise
            forget(self._console.stream)  # nobody reads any more, but somebody waits for the exit code
            self._console = dataclasses.replace(self._console, stream=None)
