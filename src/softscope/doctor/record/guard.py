"""Reads a file that a stranger may have made: nothing in it runs, and it costs no more than a record of its size."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from typing import TYPE_CHECKING, Any, Final

from softscope._text import Text
from softscope.doctor.record.problems import RecordError, RecordNotFoundError
from softscope.doctor.record.schema import TABLES

if TYPE_CHECKING:
    import pathlib

# Bytes of one value. The largest genuine one is a reading of `values.CELLS` cells.
LONGEST: Final = 2**25
# SQLite's other limits, set to what our five tables need.
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 20,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 10,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
# A genuine record takes about one instruction of SQLite's machine per byte. The bound counts instructions, not
# seconds, so that a slow disk or a busy machine changes nothing.
_INSTRUCTIONS, _INSTRUCTIONS_PER_BYTE, _MOST_INSTRUCTIONS, _EVERY = 2_000_000, 4, 2**31, 10_000
# Bytes that decoded readings may take: sites seen late widen earlier readings, which the file does not hold.
_DECODED, _DECODED_PER_BYTE = 2**24, 16
_ROW = 6  # bytes that a row of any table takes in the file, at least


def check_kind(path: pathlib.Path) -> os.stat_result | None:
    """The file's status, or None if there is none. Raises RecordError for a folder, and for a pipe or device."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a null character in the name
        raise RecordNotFoundError("missing", path) from None
    except OSError as error:
        raise RecordError("unreadable", path, detail=error.strerror or error) from None
    if stat.S_ISDIR(found.st_mode):
        raise RecordError("folder", path)
    if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for its writer
        raise RecordError("special", path)
    return found


def distrust(database: sqlite3.Connection) -> None:
    """Let the file's schema run nothing: no functions with side effects, no virtual tables, and small limits."""
    for limit, value in _LIMITS.items():
        database.setlimit(limit, value)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.execute("PRAGMA mmap_size = 0")  # a file that shrinks under a mapping ends the process
    database.text_factory = lambda data: str(data, "utf-8")  # raises ValueError, not an error that quotes the text


def check_schema(database: sqlite3.Connection | Reader, path: pathlib.Path) -> None:
    """Require our five tables as we made them, and nothing else: no view, trigger, virtual table or index."""
    wanted = dict(_STATEMENTS)
    for kind, name, statement in database.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind == "table" and isinstance(name, str) and isinstance(statement, str):
            if wanted.get(name) == " ".join(statement.split()):
                del wanted[name]
                continue
            if re.fullmatch("sqlite_stat[1-4]", name):  # the statistics that some tools add; SQLite reads them itself
                continue
        elif (kind, name, statement) == ("index", "sqlite_autoindex_unseen_1", None):
            continue
        told = _KINDS.get(kind, Text(zh="对象", en="an object"))
        raise RecordError("altered", path, detail=Text(zh=f"{told.zh} {name}", en=f"{told.en} named {name}"))
    if wanted:
        raise RecordError("damaged", path, detail=f"no such table: {next(iter(wanted))}")


_KINDS: Final = {
    "table": Text(zh="另一种表", en="another table"),
    "view": Text(zh="视图", en="a view"),
    "trigger": Text(zh="触发器", en="a trigger"),
    "index": Text(zh="索引", en="an index"),
}


def _statements() -> tuple[tuple[str, str], ...]:
    found = (" ".join(statement.split()) for statement in TABLES.strip().split(";\n"))
    return tuple((one.split()[2], one) for one in found if one.startswith("CREATE TABLE"))


_STATEMENTS: Final = _statements()


_WIDE: Final = Text(zh="位置所要的读数远多于其中所存", en="its sites ask for far more readings than it holds")
_MORE: Final = Text(zh="表里的内容比文件还多", en="its tables hold more than the file")
_ENDLESS: Final = Text(zh="表没有尽头", en="its tables do not end")
_LONG: Final = Text(zh=f"有一个值超过 {LONGEST} 字节", en=f"a value of over {LONGEST} bytes")


class Reader:
    """A connection that stops, with RecordError, where reading costs more than a record of this size can need."""

    def __init__(self, database: sqlite3.Connection, path: pathlib.Path) -> None:
        self._database, self._path = database, path
        self.measure()
        database.row_factory = self._fetched
        database.set_progress_handler(self._progress, _EVERY)

    def measure(self) -> None:
        """Allow what the size of the file calls for; again once the view is fixed, since the file may have grown."""
        size = sum(os.stat(name).st_size for name in (self._path, f"{self._path}-wal") if os.path.exists(name))
        self._rows = 2 * size + 2**16  # bytes of rows that may still come
        self._decoded = _DECODED_PER_BYTE * size + _DECODED  # bytes of readings that may still be decoded
        self._calls = min(_INSTRUCTIONS + _INSTRUCTIONS_PER_BYTE * size, _MOST_INSTRUCTIONS) // _EVERY

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run a query."""
        return self._database.execute(sql, values)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def allow(self, size: int) -> None:
        """Ask before so many bytes of readings are decoded."""
        self._decoded -= size
        if self._decoded < 0:
            raise RecordError("excessive", self._path, detail=_WIDE)

    def explain(self, error: sqlite3.Error) -> None:
        """Raise what this error stands for, if it is about the limits or about Ctrl-C."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT and self._calls >= 0:
            raise KeyboardInterrupt from None  # it came while SQLite asked whether to go on, and SQLite swallowed it
        if code in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM):
            why = _ENDLESS if code == sqlite3.SQLITE_INTERRUPT else _LONG
            raise RecordError("excessive", self._path, detail=why) from None

    def _fetched(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self._rows -= _ROW + sum(len(value) for value in row if isinstance(value, str | bytes))
        if self._rows < 0:  # pages that point to one page many times
            raise RecordError("excessive", self._path, detail=_MORE)
        return row

    def _progress(self) -> bool:
        self._calls -= 1
        return self._calls < 0
