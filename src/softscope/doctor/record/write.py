"""Writes a record during training: whatever happens to the file, training goes on."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sqlite3
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from softscope.doctor.environment import of_run
from softscope.doctor.record import file, schema
from softscope.doctor.record.problems import warn
from softscope.doctor.record.reasons_in_file import reason_as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from softscope.doctor.listen.reasons import Reason
    from softscope.doctor.read.snapshot import Site, Snapshot

# Snapshots to hold in memory while the file cannot be written; beyond that, recording stops.
_PATIENCE = 256


class Record:
    """The record of one run, in one SQLite file that can be read while it is being written.

    When `add` returns, the snapshot is in the file: a killed run loses nothing. A resumed run continues in the same
    file. If its steps repeat earlier ones (from a checkpoint, or from 0), the newer ones count. If the model is a
    different one (sites, heads or scale differ), the record warns and begins a new *part*. Old parts stay;
    `read_record` returns the last one unless asked for another.

    The record never raises into the training: if the file cannot be written, one warning says why. Up to 256 snapshots
    then wait until the disk has room again; after that, recording stops. If a second process opens the same file, the
    first stops recording: with several ranks, let only one record.

    Args:
        path: the file; missing folders are created. Versions and PyTorch's seed are stored, argv and environment never.

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
        self._database: sqlite3.Connection | None = None
        self._session, self._part = 0, 0  # row ids in the file, from 1
        self._sites: tuple[Site, ...] = ()
        self._queue: list[tuple[Callable[[sqlite3.Connection, Any], None], Any]] = []  # changes not in the file yet
        self._warned = False
        try:
            self._database, wal = file.for_writing(self.path)
            weakref.finalize(self, _close, self._database, self._process)
            self._change([(self._begin, of_run())])
        except Exception as error:  # of any kind: none may end a training
            self._stop(error)
            return
        if not wal:
            warn(
                f"{self.path} is on a filesystem without SQLite's WAL mode, as network filesystems are: "
                f"recording goes on with a rollback journal, more slowly; a local path is better"
            )

    def sites(self, sites: Iterable[Site]) -> None:
        """Set the sites that the next snapshots refer to: the earlier ones and more, or those of another model."""
        sites = tuple(sites)
        if sites == self._sites:
            return
        what = schema.difference(self._sites, sites)
        before, self._sites = self._sites, sites
        self._write(self._begin_part if what or not before else self._renew_sites, schema.sites_as_text(sites))
        if what:
            warn(
                f"{self.path} holds the run of a model that differs ({what}): a new part begins; "
                f"read_record(path, part=-2) gives the one before"
            )

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
        self._write(self._end, ended, now=True)
        with self._lock:
            if self._mine():
                assert self._database is not None
                file.into_one_file(self._database)
                self._let_go()

    @property
    def last_step(self) -> int | None:
        """The last step in the file, or None; a resumed run can continue counting from it."""
        with self._lock:
            if not self._mine():
                return None
            assert self._database is not None
            with contextlib.suppress(sqlite3.Error):
                found = self._database.execute("SELECT step FROM steps ORDER BY id DESC LIMIT 1").fetchone()
                return None if found is None else int(found[0])
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("" if kind is None else kind.__name__)

    # Changes; each runs inside a transaction.

    def _begin(self, database: sqlite3.Connection, noted: dict[str, Any]) -> None:
        self._session = database.execute("INSERT INTO sessions (facts) VALUES (?)", (json.dumps(noted),)).lastrowid or 0
        found = database.execute("SELECT id, sites FROM parts ORDER BY id DESC LIMIT 1").fetchone()
        if found is not None:
            self._part, self._sites = found[0], schema.sites_of_text(found[1])

    def _begin_part(self, database: sqlite3.Connection, sites: str) -> None:
        self._part = database.execute("INSERT INTO parts (sites) VALUES (?)", (sites,)).lastrowid or 0

    def _renew_sites(self, database: sqlite3.Connection, sites: str) -> None:
        database.execute("UPDATE parts SET sites = ? WHERE id = ?", (sites, self._part))

    def _note_unseen(self, database: sqlite3.Connection, modules: list[tuple[str, Reason | str]]) -> None:
        rows = [(self._part, module, reason_as_text(why)) for module, why in modules]
        database.executemany("INSERT OR REPLACE INTO unseen VALUES (?, ?, ?)", rows)

    def _add(self, database: sqlite3.Connection, snapshot: Snapshot) -> None:
        newest = database.execute("SELECT max(id) FROM sessions").fetchone()[0]
        if newest != self._session:
            raise RuntimeError("another run records into it now; give each run its own file")
        sites, heads = self._shape(snapshot)
        added = database.execute(
            "INSERT INTO steps (part, session, step, seconds, loss, sites, heads) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._part, self._session, int(snapshot.step), float(snapshot.seconds),
             schema.loss_as_cell(snapshot.loss), sites, heads),
        ).lastrowid  # fmt: skip
        blobs = [(added, name, schema.blob(reading)) for name, reading in snapshot.readings.items()]
        database.executemany("INSERT INTO readings VALUES (?, ?, ?)", blobs)

    def _shape(self, snapshot: Snapshot) -> tuple[int, int]:
        """(sites, heads) of every reading; a blob of another shape could not be read back."""
        shapes = {np.shape(reading) for reading in snapshot.readings.values()} or {(0, 0)}
        known = len(self._sites), max((site.heads for site in self._sites), default=0)
        shape = shapes.pop()
        if shapes or len(shape) != 2 or shape[0] > known[0] or shape[1] > known[1]:
            came = " and ".join(map(str, (shape, *shapes)))
            raise ValueError(f"readings must be (sites, heads) = {known} or less, but got {came}; call sites() before")
        return shape

    def _note(self, database: sqlite3.Connection, more: dict[str, Any]) -> None:
        known = database.execute("SELECT facts FROM sessions WHERE id = ?", (self._session,)).fetchone()[0]
        text = json.dumps(json.loads(known) | more, allow_nan=False)
        database.execute("UPDATE sessions SET facts = ? WHERE id = ?", (text, self._session))

    def _end(self, database: sqlite3.Connection, ended: str) -> None:
        database.execute("UPDATE sessions SET ended = ? WHERE id = ?", (ended, self._session))

    # Protection of the training.

    def _mine(self) -> bool:
        """Whether there is a file to write to, and this object is not a copy in a forked process."""
        return self._database is not None and self._process == os.getpid()

    def _write(self, change: Callable[[sqlite3.Connection, Any], None], argument: Any, now: bool = False) -> None:
        """Make this change and the waiting ones; any exception becomes one warning."""
        with self._lock:
            if not self._mine():
                return
            self._queue.append((change, argument))
            waiting = len(self._queue)
            # While the file fails, a retry at every step would delay the training: retry at 1, 2, 4, 8, … waiting
            # changes.
            if waiting & (waiting - 1) and not now:
                return
            try:
                self._change(self._queue)
            except (sqlite3.Error, OSError) as error:  # a full disk or a lock may be temporary
                self._complain(
                    f"cannot be written ({error}): training goes on, and readings wait in memory for a while"
                )
                if waiting >= _PATIENCE:
                    self._let_go()
            except Exception as error:
                self._stop(error)
            else:
                self._queue.clear()

    def _change(self, changes: list[tuple[Callable[[sqlite3.Connection, Any], None], Any]]) -> None:
        """Make the changes in one transaction: all of them reach the file, or none."""
        database = self._database
        assert database is not None
        database.execute("BEGIN IMMEDIATE")
        try:
            for change, argument in changes:
                change(database, argument)
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # SQLite may have ended it already
                database.execute("ROLLBACK")
            raise

    def _stop(self, error: Exception) -> None:
        self._let_go()
        self._complain(f"cannot be written ({str(error) or type(error).__name__}): training goes on without a record")

    def _complain(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            warn(f"{self.path} {what}")

    def _let_go(self) -> None:
        self._queue.clear()
        database, self._database = self._database, None
        if database is not None:
            database.close()


def _close(database: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:  # a fork must not close the file its parent writes
        database.close()
