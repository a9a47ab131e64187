"""Opens the file: in WAL mode for writing, where that works; for reading, without modifying or trusting it."""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import sqlite3
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from softscope.doctor.record import guard
from softscope.doctor.record.problems import RecordError, RecordNotFoundError
from softscope.doctor.record.schema import APPLICATION, TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds to wait for another process's lock. The writer is inside a training loop, so it gives up early and retries
# later.
_WRITER_WAITS, _READER_WAITS = 0.5, 10.0
_VFS = ""  # a test sets one without shared memory, like that of network filesystems
Identity = tuple[int, int]  # device and inode: a path may come to name another file
# Files open for writing, with the process that opened them.
_open: collections.Counter[tuple[Identity, int]] = collections.Counter()


def for_writing(path: pathlib.Path) -> tuple[sqlite3.Connection, bool, Identity]:
    """A connection for writing, whether it is in WAL mode, and which file it is.

    Without WAL, readers and writer block each other. An existing file that is not a record of this version is left
    untouched and raises RecordError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found = guard.check_kind(path)
    if found is not None:
        _check_fork((found.st_dev, found.st_ino))
        if found.st_size:
            _check_unopened(path)
    database = sqlite3.connect(
        _uri(path, "rwc"), uri=True, timeout=_WRITER_WAITS, isolation_level=None, check_same_thread=False
    )
    try:
        guard.distrust(database)
        # Create the tables first, in one transaction: a concurrent reader sees none of them or all of them.
        database.execute("BEGIN IMMEDIATE")
        if _is_empty(database):
            for statement in TABLES.strip().split(";\n"):
                database.execute(statement)
        _check(database, path)
        database.execute("COMMIT")
        wal = _wal(database)
        # In WAL mode a killed process loses nothing and a power cut only the last steps, so we skip the fsync per step.
        database.execute("PRAGMA synchronous = NORMAL")
        identity = identity_of(path)
    except BaseException:
        database.close()
        raise
    _open[identity, os.getpid()] += 1
    return database, wal, identity


def _check_unopened(path: pathlib.Path) -> None:
    """Check the file before it is opened for writing: one that is not ours is never touched."""
    try:
        with contextlib.closing(_reader(path, _WRITER_WAITS)) as reader:
            _check(reader, path)
    except sqlite3.OperationalError as error:
        # A write that was killed must be undone before anyone can look. Opening the file for writing does that.
        if _reason(error) != "unfinished":
            raise


def identity_of(path: pathlib.Path) -> Identity:
    """Which file the path names now."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def unwritten(path: pathlib.Path) -> float:
    """Seconds since the record was last written."""
    times = [0.0]
    for name in (path, f"{path}-wal"):
        with contextlib.suppress(OSError):
            times.append(os.stat(name).st_mtime)
    return max(0.0, time.time() - max(times))


def close_writing(database: sqlite3.Connection, identity: Identity, process: int) -> None:
    """Close a connection for writing; in a fork, leave it to the process that opened it."""
    if os.getpid() == process:
        database.close()
        _open[identity, process] -= 1


def _check_fork(identity: Identity) -> None:
    """Refuse a file that the parent has open: SQLite would believe that it holds the parent's locks.

    The parent could then remove the log that the child writes to, and what the child records would be lost.
    """
    if any(one == identity and pid != os.getpid() and count > 0 for (one, pid), count in _open.items()):
        raise RuntimeError("the process that this one was forked from records into it; give each its own file")


def _wal(database: sqlite3.Connection) -> bool:
    try:
        answer = database.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    except sqlite3.OperationalError:  # some network filesystems claim to have shared memory and then fail
        answer = database.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    return bool(answer == "wal")


def into_one_file(database: sqlite3.Connection) -> None:
    """Merge the log into the file, so that the file can be copied, or read from a folder that is not writable."""
    with contextlib.suppress(sqlite3.Error):  # a reader is active or the disk is full: the log stays and is read too
        database.execute("PRAGMA journal_mode = DELETE")


@contextlib.contextmanager
def reading(path: pathlib.Path) -> Iterator[guard.Reader]:
    """A read-only connection with a consistent view of the record; raises RecordError if the file is not a record."""
    if guard.check_kind(path) is None:
        raise RecordNotFoundError("missing", path)
    reader = None
    try:
        with contextlib.closing(_reader(path, _READER_WAITS)) as reader:
            reader.execute("BEGIN")
            _check(reader, path)
            reader.measure()
            yield reader
    except sqlite3.Error as error:
        if reader is not None:
            reader.explain(error)
        raise RecordError(_reason(error), path, detail=error) from None
    except OSError as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError("unreadable", path, detail=error.strerror or error) from None
    except (ValueError, KeyError, TypeError) as error:  # the tables hold invalid data
        if isinstance(error, RecordError):
            raise
        told = f"no {error}" if isinstance(error, KeyError) else error
        raise RecordError("damaged", path, detail=told) from error


# Not by looking at the file's first bytes: closing a file drops every lock that this process has on it, and so those of
# a record that is being written.
_PASSING = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
}  # fmt: skip


def _reason(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return "unfinished"
    if code & 0xFF == sqlite3.SQLITE_NOTADB:
        return "foreign"
    return "unreadable" if code & 0xFF in _PASSING else "damaged"


def _reader(path: pathlib.Path, waits: float) -> guard.Reader:
    opened = sqlite3.connect(_uri(path, "ro"), uri=True, timeout=waits, isolation_level=None)
    reader = guard.Reader(opened, path)
    try:
        guard.distrust(opened)
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return reader
    except sqlite3.OperationalError as error:
        opened.close()
        reader.explain(error)
        code = getattr(error, "sqlite_errorcode", 0)
        forbidden = code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not forbidden or code == sqlite3.SQLITE_READONLY_ROLLBACK or pathlib.Path(f"{path}-wal").exists():
            raise
    except BaseException:
        opened.close()
        raise
    # In WAL mode, in a folder that is not writable: there is no log, so nobody is writing and nothing can change.
    opened = sqlite3.connect(_uri(path, "ro") + "&immutable=1", uri=True, isolation_level=None)
    guard.distrust(opened)
    return guard.Reader(opened, path)


def _check(database: sqlite3.Connection | guard.Reader, path: pathlib.Path) -> None:
    if not _application(database):
        raise RecordError("empty" if _is_empty(database) else "foreign", path)
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise RecordError("newer" if found > VERSION else "older", path, found=found, known=VERSION)
    guard.check_schema(database, path)


def _is_empty(database: sqlite3.Connection | guard.Reader) -> bool:
    nothing = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    return nothing and not _application(database)


def _application(database: sqlite3.Connection | guard.Reader) -> bool:
    return bool(database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION)


def _uri(path: pathlib.Path, mode: str) -> str:
    return f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}" + (f"&vfs={_VFS}" if _VFS else "")
