"""Opening the file: for writing in WAL mode where that works, for reading without touching it."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import quote

from softscope.doctor.record.problems import RecordError, RecordNotFoundError
from softscope.doctor.record.schema import APPLICATION, TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long to wait for another process's lock. A writer stands in somebody's training loop and tries again later.
_WRITER_WAITS, _READER_WAITS = 0.5, 10.0
_VFS = ""  # a test sets one that has no shared memory, as network filesystems have none


def for_writing(path: pathlib.Path) -> tuple[sqlite3.Connection, bool]:
    """A connection that may write, and whether it is in WAL mode: else readers and writer wait for each other.

    A file that is there and no record of this version is left as it is: RecordError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size:
        with contextlib.closing(_reader(path)) as database:
            _check(database, path)  # nothing that is not ours is touched
    database = sqlite3.connect(
        _uri(path, "rwc"), uri=True, timeout=_WRITER_WAITS, isolation_level=None, check_same_thread=False
    )
    try:
        # The tables first and in one transaction: who reads meanwhile finds nothing, or all of them.
        database.execute("BEGIN IMMEDIATE")
        if not _application(database):
            for statement in TABLES.strip().split(";\n"):
                database.execute(statement)
        database.execute("COMMIT")
        wal = _wal(database)
        # In WAL mode a killed process loses nothing, and only a power cut the last steps; no fsync for each step.
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database, wal


def _wal(database: sqlite3.Connection) -> bool:
    try:
        answer = database.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    except sqlite3.OperationalError:  # some network filesystems promise shared memory and fail
        answer = database.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
    return bool(answer == "wal")


def into_one_file(database: sqlite3.Connection) -> None:
    """Fold the log into the file, so that it can be copied, or read from where nobody may write."""
    with contextlib.suppress(
        sqlite3.Error
    ):  # somebody is reading, or the disk is full: the log stays, and is read with it
        database.execute("PRAGMA journal_mode = DELETE")


@contextlib.contextmanager
def reading(path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads, and sees one moment of the record; what is no record raises RecordError."""
    try:
        if path.is_dir():
            raise RecordError("folder", path)
        if not path.exists():
            raise RecordNotFoundError("missing", path)
        with contextlib.closing(_reader(path)) as database:
            database.execute("BEGIN")
            _check(database, path)
            yield database
    except sqlite3.Error as error:
        raise RecordError(_reason(error, path), path, detail=error) from None
    except PermissionError as error:
        raise RecordError("unreadable", path, detail=error.strerror) from None
    except (ValueError, KeyError, TypeError) as error:  # what stands in the tables makes no sense
        if isinstance(error, RecordError):
            raise
        raise RecordError("damaged", path, detail=error) from error


def _reason(error: sqlite3.Error, path: pathlib.Path) -> str:
    if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
        return "unreadable"  # locked, or not allowed; what lacks a table is damaged
    with path.open("rb") as file:
        return "damaged" if file.read(16) == b"SQLite format 3\0" else "foreign"


def _reader(path: pathlib.Path) -> sqlite3.Connection:
    database = sqlite3.connect(_uri(path, "ro"), uri=True, timeout=_READER_WAITS, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        database.close()
        forbidden = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not forbidden or pathlib.Path(f"{path}-wal").exists():
            raise
        # In WAL mode, and its folder may not be written: without a log nobody is writing, so nothing can change.
        database = sqlite3.connect(_uri(path, "ro") + "&immutable=1", uri=True, isolation_level=None)
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _check(database: sqlite3.Connection, path: pathlib.Path) -> None:
    if not _application(database):
        nothing = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        raise RecordError("empty" if nothing else "foreign", path)
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise RecordError("newer" if found > VERSION else "older", path, found=found, known=VERSION)


def _application(database: sqlite3.Connection) -> bool:
    return bool(database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION)


def _uri(path: pathlib.Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}" + (f"&vfs={_VFS}" if _VFS else "")
