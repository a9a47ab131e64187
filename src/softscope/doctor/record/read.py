"""Reads a record: all of it, or only what is new since the last look."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any

from softscope.doctor.read.snapshot import History, Site, Snapshot
from softscope.doctor.record import file, schema
from softscope.doctor.record.problems import RecordError
from softscope.doctor.record.reasons_in_file import reason_of_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


def read_record(path: str | os.PathLike[str], *, part: int = -1) -> History:
    """Read the history from a record, even while it is being written; raises RecordError if the file is not a record.

    Args:
        path: the file.
        part: which model to read, if several were recorded into one file: 0 is the first, −1 the last.

    >>> import tempfile
    >>> from softscope.doctor import Record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Record(f"{folder}/run.db") as record:
    ...         record.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
    ...     read_record(f"{folder}/run.db").sites[0].name
    'encoder.0'
    """
    path = pathlib.Path(path)
    with file.reading(path) as database:
        return _history(database, path, part)


@dataclasses.dataclass(frozen=True)
class News:
    """What is new since an earlier look, for following a run."""

    sites: tuple[Site, ...]
    snapshots: tuple[Snapshot, ...]
    mark: int  # pass it to the next look
    ended: str | None  # None while the run goes on; '' if it ended normally, else the exception's name


def news(path: str | os.PathLike[str], mark: int | None = None) -> News:
    """The snapshots after the mark; without a mark, only the last one."""
    path = pathlib.Path(path)
    with file.reading(path) as database:
        parts = _parts(database)
        sites = parts[-1][1] if parts else ()
        newest = database.execute("SELECT coalesce(max(id), 0) FROM steps").fetchone()[0]
        rows = database.execute(
            _STEPS + "WHERE part = ? AND id > ? ORDER BY id",
            (parts[-1][0] if parts else 0, newest - 1 if mark is None else mark),
        ).fetchall()
        ended = database.execute("SELECT ended FROM sessions ORDER BY id DESC LIMIT 1").fetchone()
        return News(sites, tuple(_snapshots(database, rows, sites)), newest, ended and ended[0])


_STEPS = "SELECT id, step, seconds, loss, sites, heads FROM steps "


def _history(database: sqlite3.Connection, path: pathlib.Path, part: int) -> History:
    parts = _parts(database)
    noted = [json.loads(text) for (text,) in database.execute("SELECT facts FROM sessions ORDER BY id")]
    known = {"sessions": len(noted), "parts": len(parts)}
    if not parts:
        return History((), (), (), (noted[-1] if noted else {}) | known)
    if not -len(parts) <= part < len(parts):
        raise RecordError("part", path, parts=len(parts), part=part)
    number, sites = parts[part]
    rows: list[Any] = []
    for row in database.execute(_STEPS + "WHERE part = ? ORDER BY id", (number,)):
        # A run resumed from a checkpoint repeats steps: drop what the earlier run recorded after the checkpoint.
        while rows and rows[-1][1] >= row[1]:
            rows.pop()
        rows.append(row)
    session = database.execute("SELECT max(session) FROM steps WHERE part = ?", (number,)).fetchone()[0]
    missed = database.execute("SELECT module, why FROM unseen WHERE part = ? ORDER BY rowid", (number,))
    unseen = tuple((module, reason_of_text(why)) for module, why in missed)
    told = noted[(session or len(noted)) - 1]
    return History(sites, tuple(_snapshots(database, rows, sites)), unseen, told | known)


def _parts(database: sqlite3.Connection) -> list[tuple[int, tuple[Site, ...]]]:
    rows = database.execute("SELECT id, sites FROM parts ORDER BY id").fetchall()
    return [(number, schema.sites_of_text(text)) for number, text in rows]


def _snapshots(database: sqlite3.Connection, rows: Sequence[Any], sites: tuple[Site, ...]) -> list[Snapshot]:
    wanted = len(sites), max((site.heads for site in sites), default=0)
    made = []
    for number, step, seconds, loss, *written in rows:
        blobs = database.execute("SELECT name, data FROM readings WHERE snapshot = ?", (number,))
        readings = {name: schema.array(data, (written[0], written[1]), wanted) for name, data in blobs}
        made.append(Snapshot(step, seconds, None if loss is None else float(loss), readings))
    return made
