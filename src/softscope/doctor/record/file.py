"""Opens the file: in WAL mode for writing, where that works; for reading, without modifying it."""

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

# Seconds to wait for another process's lock. The writer is inside a training loop, so it gives up early and retries
# later.
_WRITER_WAITS, _READER_WAITS = 0.5, 10.0
_VFS = ""  # a test sets one without shared memory, like that of network filesystems


def for_writing(path: pathlib.Path) -> tuple[sqlite3.Connection, bool]:
    """A connection for writing, and whether it is in WAL mode; without WAL, readers and writer block each other.

    An existing file that is not a record of this version is left untouched and raises RecordError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size:
        with contextlib.closing(_reader(path)) as database:
            _check(database, path)  # never touch a file that is not ours
    database = sqlite3.connect(
        _uri(path, "rwc"), uri=True, timeout=_WRITER_WAITS, isolation_level=None, check_same_thread=False
    )
    try:
        # Create the tables first, in one transaction: a concurrent reader sees none of them or all of them.
        database.execute("BEGIN IMMEDIATE")
        if not _application(database):
            for statement in TABLES.strip().split(";\n"):
                database.execute(statement)
        database.execute("COMMIT")
        wal = _wal(database)
        # In WAL mode a killed process loses nothing and a power cut only the last steps, so we skip the fsync per step.
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database, wal


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
def reading(path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection with a consistent view of the record; raises RecordError if the file is not a record."""
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
    except (ValueError, KeyError, TypeError) as error:  # the tables hold invalid data
        if isinstance(error, RecordError):
            raise
        raise RecordError("damaged", path, detail=error) from error


def _reason(error: sqlite3.Error, path: pathlib.Path) -> str:
    if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
        return "unreadable"  # locked, or no permission; a missing table means damaged
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
        # In WAL mode, in a folder that is not writable: there is no log, so nobody is writing and nothing can change.
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
