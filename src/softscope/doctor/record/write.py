"""Writes a record during training: whatever happens to the file, training goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import sqlite3
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from softscope.doctor.environment import of_run
from softscope.doctor.record import file, schema, values, writer
from softscope.doctor.record.problems import warn
from softscope.doctor.record.reasons_in_file import reason_as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from softscope.doctor.listen.reasons import Reason
    from softscope.doctor.read.snapshot import Site, Snapshot
    from softscope.doctor.record import guard

    Change = tuple[Callable[[sqlite3.Connection, Any], None], Any]

# Snapshots to hold in memory while the file cannot be written; beyond that, recording stops.
_PATIENCE = 256


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where in the file the next snapshot goes; ids count from 1."""

    session: int = 0
    part: int = 0
    sites: tuple[Site, ...] = ()
    first: int | None = None  # the part's first step


class _LostError(RuntimeError):
    """The file is no longer ours to write."""


class Record:
    """The record of one run, in one SQLite file that can be read while it is being written.

    When `add` returns, the snapshot is in the file: a killed run loses nothing. A resumed run continues in the same
    file; if it repeats steps after its checkpoint, the newer ones count. A run that starts over begins a new *part*,
    and so does one whose model differs (sites, heads or scale), with a warning. Old parts stay; `read_record` returns
    the last one unless asked for another.

    The record never raises into the training: if the file cannot be written, one warning says why. Up to 256 snapshots
    then wait until the disk has room or a lock is gone; after that, recording stops.

    A file has one writer, the one that opened it last: a run that was killed leaves no lock behind, so whoever comes
    next can always record. If another opens the file, in this process or elsewhere, or if the file is removed or
    replaced, the first warns at its next write, records nothing more and changes nothing. A forked process cannot
    record into a file that its parent has open.

    Ranks of one launch do not take the file from each other: whoever finds another rank in it records beside it, into
    `run.rank1.db`, and says so; `path` then names that file. Ranks other than 0 open the file with their first reading:
    with `softscope.probe(model, group=…)`, only the group's first rank has any.

    Args:
        path: the file; missing folders are created. Versions, PyTorch's seed, rank and process id are stored; argv,
            environment and the name of the machine never.

    Examples:
        >>> import tempfile, numpy as np
        >>> from softscope.doctor.record import Record, read_record
        >>> from softscope.doctor.read.snapshot import Site, Snapshot
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Record(folder.name + "/run.db") as record:
        ...     record.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
        ...     record.add(Snapshot(0, 0.1, 2.5, {"sharpness": np.array([[0.25, 0.5]], np.float32)}))
        >>> read_record(folder.name + "/run.db").series("sharpness")
        array([[[0.25, 0.5 ]]], dtype=float32)
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        self._process, self._lock = os.getpid(), threading.RLock()
        self._absolute = self.path
        with contextlib.suppress(OSError):  # the working directory may be gone
            self._absolute = self.path.absolute()  # and the program may change to another
        self._active = True
        self._database: sqlite3.Connection | None = None
        self._release: Callable[[], None] = lambda: None
        self._identity: file.Identity | None = None
        self._place = _Place()
        self._given: tuple[Site, ...] = ()
        self._modules: dict[str, Reason | str] = {}  # not seen, as noted by this run
        self._queue: list[Change] = []  # changes not in the file yet
        self._warned: set[str] = set()
        self._announced: list[str] = []  # warnings that hold once the transaction is in the file
        mine = writer.rank()
        self._late = mine is not None and mine[0] > 0  # nothing to record yet, and perhaps never
        if self._late:
            self._queue.append((self._begin, None))
        else:
            self._write(self._begin, None)

    def sites(self, sites: Iterable[Site]) -> None:
        """Set the sites that the next snapshots refer to: the earlier ones and more, or those of another model."""
        sites = tuple(sites)
        if sites != self._given:
            self._given = sites
            self._write(self._set_sites, sites)

    def add(self, snapshot: Snapshot) -> None:
        """Record the snapshot of one step."""
        self._write(self._add, snapshot)

    def unseen(self, modules: Iterable[tuple[str, Reason | str]]) -> None:
        """Record modules that could not be read, each with its reason or a sentence of your own."""
        self._write(self._note_unseen, list(modules))

    def note(self, facts: Mapping[str, Any]) -> None:
        """Record further facts about this run; `read_record` returns them. Values must be valid in JSON."""
        self._write(self._note, dict(facts))

    def close(self, ended: str = "") -> None:
        """End the run, with the name of the exception that ended it, if any. The record is then a single file."""
        if not self._late:
            self._write(self._end, ended, now=True)
        if self._mine():
            with self._lock:
                if self._database is not None:
                    file.into_one_file(self._database)
                self._let_go()

    @property
    def last_step(self) -> int | None:
        """The last step in the file, or None; a resumed run can continue counting from it."""
        if not self._mine():
            return None
        with self._lock, contextlib.suppress(sqlite3.Error, ValueError):
            if self._database is not None:
                return _last_step(self._database)
            if self._late:
                with file.reading(self._absolute) as reader:
                    return _last_step(reader)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("" if kind is None else kind.__name__)

    # Changes; each runs inside a transaction.

    def _begin(self, database: sqlite3.Connection, _: None) -> None:
        me = writer.me()
        last = database.execute("SELECT facts FROM sessions ORDER BY id DESC LIMIT 1").fetchone()
        if last is not None:
            writer.check_free(me, last[0], self._absolute)
        facts = _facts(of_run() | {writer.FACT: me})
        session = database.execute("INSERT INTO sessions (facts) VALUES (?)", (facts,)).lastrowid or 0
        self._place = _Place(session)
        found = database.execute("SELECT id, sites FROM parts ORDER BY id DESC LIMIT 1").fetchone()
        if found is not None:
            first = database.execute("SELECT min(step) FROM steps WHERE part = ?", (found[0],)).fetchone()[0]
            self._place = _Place(session, found[0], schema.sites_of_text(found[1]), first)

    def _set_sites(self, database: sqlite3.Connection, sites: tuple[Site, ...]) -> None:
        place = self._place
        written = schema.sites_as_text(sites)
        schema.sites_of_text(written)  # whatever cannot be read back is refused here
        what = schema.difference(place.sites, sites)
        if what or not place.part:
            self._begin_part(database, sites)
        elif sites != place.sites:
            database.execute("UPDATE parts SET sites = ? WHERE id = ?", (written, place.part))
            self._place = dataclasses.replace(place, sites=sites)
        if what:
            self._announced.append(
                f"{self.path} holds the run of a model that differs ({what}): a new part begins; "
                f"read_record(path, part=-2) gives the one before"
            )

    def _begin_part(self, database: sqlite3.Connection, sites: tuple[Site, ...]) -> None:
        text = schema.sites_as_text(sites)
        part = database.execute("INSERT INTO parts (sites) VALUES (?)", (text,)).lastrowid or 0
        self._place = _Place(self._place.session, part, sites)

    def _note_unseen(self, database: sqlite3.Connection, modules: list[tuple[str, Reason | str]]) -> None:
        rows = [
            (
                self._place.part,
                values.shortened(module, values.NAME),
                values.shortened(reason_as_text(why), values.TEXT),
            )
            for module, why in modules
        ]
        database.executemany("INSERT OR REPLACE INTO unseen VALUES (?, ?, ?)", rows)
        self._modules |= dict(modules)

    def _add(self, database: sqlite3.Connection, snapshot: Snapshot) -> None:
        sites, heads = self._shape(snapshot)
        step, first = values.step(int(snapshot.step)), self._place.first
        if not self._place.part or (first is not None and step <= first):
            # The run starts over. In the same part, its steps would supersede all that the earlier run recorded.
            self._begin_part(database, self._place.sites)
            self._note_unseen(database, list(self._modules.items()))
        place = self._place
        added = database.execute(
            "INSERT INTO steps (part, session, step, seconds, loss, sites, heads) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (place.part, place.session, step, values.number("seconds", float(snapshot.seconds)),
             schema.loss_as_cell(snapshot.loss), sites, heads),
        ).lastrowid  # fmt: skip
        self._place = dataclasses.replace(place, first=step if place.first is None else min(place.first, step))
        blobs = [(added, values.text("a reading's name", name), schema.blob(reading))
                 for name, reading in snapshot.readings.items()]  # fmt: skip
        database.executemany("INSERT INTO readings VALUES (?, ?, ?)", blobs)

    def _shape(self, snapshot: Snapshot) -> tuple[int, int]:
        """(sites, heads) of every reading; a blob of another shape could not be read back."""
        shapes = {np.shape(reading) for reading in snapshot.readings.values()} or {(0, 0)}
        known = len(self._place.sites), max((site.heads for site in self._place.sites), default=0)
        shape = shapes.pop()
        if shapes or len(shape) != 2 or shape[0] > known[0] or shape[1] > known[1]:
            came = " and ".join(map(str, (shape, *shapes)))
            raise ValueError(f"readings must be (sites, heads) = {known} or less, but got {came}; call sites() before")
        return shape

    def _note(self, database: sqlite3.Connection, more: dict[str, Any]) -> None:
        mine = (self._place.session,)
        known = database.execute("SELECT facts FROM sessions WHERE id = ?", mine).fetchone()[0]
        database.execute("UPDATE sessions SET facts = ? WHERE id = ?", (_facts(json.loads(known) | more), *mine))

    def _end(self, database: sqlite3.Connection, ended: str) -> None:
        database.execute(
            "UPDATE sessions SET ended = ? WHERE id = ?", (values.shortened(ended, values.NAME), self._place.session)
        )

    # Protection of the training.

    def _mine(self) -> bool:
        """Whether this still records, and is not a copy in a forked process, whose lock another thread may hold."""
        return self._active and self._process == os.getpid()

    def _write(self, change: Callable[[sqlite3.Connection, Any], None], argument: Any, now: bool = False) -> None:
        """Make this change and the waiting ones; any exception becomes one warning."""
        if not self._mine():
            return
        with self._lock:
            if not self._active:
                return
            self._late = False
            self._queue.append((change, argument))
            waiting = len(self._queue)
            # While the file fails, a retry at every step would delay the training: retry at 1, 2, 4, 8, … waiting
            # changes.
            if waiting & (waiting - 1) and not now:
                return
            try:
                self._change_here_or_beside(self._queue)
            except _LostError as error:
                self._let_go()
                if change != self._end or waiting > 1:  # otherwise nothing was lost
                    self._complain("lost", f"cannot be written ({error}): training goes on without a record")
            except (sqlite3.OperationalError, OSError) as error:  # a full disk or a lock may be temporary
                if self._database is None and not _locked(error):
                    self._stop(error)
                    return
                self._complain(
                    "waits", f"cannot be written ({error}): training goes on, and readings wait in memory for a while"
                )
                if waiting >= _PATIENCE:
                    self._let_go()
            except Exception as error:  # of any kind: none may end a training
                self._stop(error)
            else:
                self._queue.clear()

    def _change_here_or_beside(self, changes: list[Change]) -> None:
        try:
            self._change(changes)
        except writer.TakenError as taken:
            self._release()
            self._database, before = None, self.path
            self.path, self._absolute = (writer.beside(path, taken.mine) for path in (self.path, self._absolute))
            warn(
                f"rank {taken.other} already records into {before}, so rank {taken.mine} records into {self.path}; "
                f"softscope.probe(model, group=…) reads all ranks as one"
            )
            self._change(changes)

    def _change(self, changes: list[Change]) -> None:
        """Make the changes in one transaction: all of them reach the file, or none."""
        database = self._database or self._open()
        before = self._place
        database.execute("BEGIN IMMEDIATE")
        try:
            self._check_ours(database)
            for change, argument in changes:
                change(database, argument)
            database.execute("COMMIT")
        except BaseException:
            self._place = before
            self._announced.clear()
            if database.in_transaction:  # SQLite may have ended it already
                database.execute("ROLLBACK")
            raise
        for sentence in self._announced:
            warn(sentence)
        self._announced.clear()

    def _open(self) -> sqlite3.Connection:
        database, wal, self._identity = file.for_writing(self._absolute)
        self._database = database
        self._release = weakref.finalize(self, file.close_writing, database, self._identity, self._process)
        if not wal:
            warn(
                f"{self.path} is on a filesystem without SQLite's WAL mode, as network filesystems are: "
                f"recording goes on with a rollback journal, more slowly; a local path is better"
            )
        return database

    def _check_ours(self, database: sqlite3.Connection) -> None:
        """Check before every change that the path still names our file, and that nobody opened it after us."""
        try:
            kept = file.identity_of(self._absolute) == self._identity
        except FileNotFoundError:
            kept = False
        if not kept:
            raise _LostError("it was removed or replaced; leave the file of a run alone while it records")
        newest = database.execute("SELECT max(id) FROM sessions").fetchone()[0]
        if self._place.session and newest != self._place.session:
            raise _LostError("another run records into it now; give each run its own file")

    def _stop(self, error: Exception) -> None:
        self._let_go()
        self._complain(
            "stops", f"cannot be written ({str(error) or type(error).__name__}): training goes on without a record"
        )

    def _complain(self, about: str, what: str) -> None:
        if not self._warned or (about == "lost" and "lost" not in self._warned):  # what waited is now lost for good
            self._warned.add(about)
            warn(f"{self.path} {what}")

    def _let_go(self) -> None:
        self._active, self._database = False, None
        self._queue.clear()
        self._release()


def _facts(noted: dict[str, Any]) -> str:
    return json.dumps(values.facts(noted), allow_nan=False)


def _last_step(database: sqlite3.Connection | guard.Reader) -> int | None:
    found = database.execute("SELECT step FROM steps ORDER BY id DESC LIMIT 1").fetchone()
    return None if found is None else values.step(found[0])


def _locked(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
