"""Reads a record: all of it, or only what is new since the last look."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope.doctor.read.snapshot import History, Site, Snapshot
from softscope.doctor.record import file, schema, values, writer
from softscope.doctor.record.problems import RecordError
from softscope.doctor.record.reasons_in_file import reason_of_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from softscope.doctor.record.guard import Reader


def read_record(path: str | os.PathLike[str], *, part: int | None = None) -> History:
    """Read the history from a record, even while it is being written; raises RecordError if the file is not a record.

    Args:
        path: the file.
        part: which run to read, if several were recorded into one file: 0 is the first, −1 the last. Without it, the
            last that has readings.

    >>> import tempfile
    >>> from softscope.doctor import Record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Record(f"{folder}/run.db") as record:
    ...         record.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
    ...     read_record(f"{folder}/run.db").sites[0].name
    'encoder.0'
    """
    path = pathlib.Path(path)
    with file.reading(path) as reader:
        return _history(reader, path, part)


@dataclasses.dataclass(frozen=True)
class News:
    """What is new since an earlier look, for following a run."""

    sites: tuple[Site, ...]
    snapshots: tuple[Snapshot, ...]
    mark: int  # pass it to the next look
    ended: str | None  # None while the run goes on; '' if it ended normally, else the exception's name
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)  # as they are now
    gone: float | None = None  # seconds since the last write, if the writer's process ended without ending the run

    @property
    def over(self) -> bool:
        """Whether nothing more comes, unless the run is resumed."""
        return self.ended is not None or self.gone is not None


def news(path: str | os.PathLike[str], mark: int | None = None) -> News:
    """The snapshots after the mark; without a mark, only the last one."""
    path = pathlib.Path(path)
    found = _news(path, mark)
    wrote = found.facts.get(writer.FACT)
    if found.ended is None and writer.is_gone(wrote):
        found = _news(path, mark)  # it may have written more, and its end, since we looked
        if found.ended is None and found.facts.get(writer.FACT) == wrote:
            return dataclasses.replace(found, gone=file.unwritten(path))
    return found


def _news(path: pathlib.Path, mark: int | None) -> News:
    with file.reading(path) as reader:
        parts = _parts(reader)
        number, sites = parts[-1] if parts else (0, ())
        newest = reader.execute("SELECT coalesce(max(id), 0) FROM steps").fetchone()[0]
        since, after = ("id >= ?", newest) if mark is None else ("id > ?", mark)
        steps = _steps(reader, f"WHERE part = ? AND {since}", number, after)
        session = reader.execute("SELECT ended, facts FROM sessions ORDER BY id DESC LIMIT 1").fetchone()
        ended, facts = session or (None, "{}")
        how = None if ended is None else values.text("ended", ended)
        known = values.facts(values.parsed("facts", facts))
        return News(sites, tuple(_snapshots(reader, steps, sites)), newest, how, known)


class _Step(NamedTuple):
    """A row of the table `steps`."""

    id: int
    step: int
    seconds: float
    loss: float | None
    shape: tuple[int, int]
    session: int


def _history(reader: Reader, path: pathlib.Path, part: int | None) -> History:
    parts = _parts(reader)
    noted = {
        number: values.facts(values.parsed("facts", text))
        for number, text in reader.execute("SELECT id, facts FROM sessions ORDER BY id")
    }
    known = {"sessions": len(noted), "parts": len(parts)}
    last: dict[str, Any] = next(reversed(noted.values()), {})
    if not parts:
        return History((), (), (), last | known)
    if part is None:
        # A run may have ended between naming its sites and its first reading: it must not hide the one before.
        filled = {number for (number,) in reader.execute("SELECT DISTINCT part FROM steps")}
        part = max((index for index, (number, _) in enumerate(parts) if number in filled), default=-1)
    if not -len(parts) <= part < len(parts):
        raise RecordError("part", path, parts=len(parts), part=part)
    number, sites = parts[part]
    kept: list[_Step] = []
    for step in _steps(reader, "WHERE part = ?", number):
        # A run resumed from a checkpoint repeats steps: drop what the earlier run recorded after the checkpoint.
        while kept and kept[-1].step >= step.step:
            kept.pop()
        kept.append(step)
    missed = reader.execute("SELECT module, why FROM unseen WHERE part = ? ORDER BY rowid", (number,))
    unseen = tuple(
        (values.text("module", module), reason_of_text(values.text("why", why, values.TEXT))) for module, why in missed
    )
    if kept and kept[-1].session not in noted:
        raise ValueError("its steps belong to a session that is not in it")
    told = noted[kept[-1].session] if kept else last
    return History(sites, tuple(_snapshots(reader, kept, sites)), unseen, told | known)


def _parts(reader: Reader) -> list[tuple[int, tuple[Site, ...]]]:
    rows = reader.execute("SELECT id, sites FROM parts ORDER BY id").fetchall()
    return [(number, schema.sites_of_text(text)) for number, text in rows]


def _steps(reader: Reader, where: str, *arguments: int) -> Iterator[_Step]:
    query = f"SELECT id, step, seconds, loss, sites, heads, session FROM steps {where} ORDER BY id"
    for number, step, seconds, loss, sites, heads, session in reader.execute(query, arguments):
        yield _Step(
            number,
            values.step(step),
            values.number("seconds", seconds),
            values.loss(loss),
            (values.whole("sites", sites, 0, values.CELLS), values.whole("heads", heads, 0, values.HEADS)),
            session,
        )


def _snapshots(reader: Reader, steps: Iterable[_Step], sites: tuple[Site, ...]) -> Iterator[Snapshot]:
    wanted = len(sites), max((site.heads for site in sites), default=0)
    size = 4 * wanted[0] * wanted[1]
    for step in list(steps):
        blobs = reader.execute("SELECT name, data FROM readings WHERE snapshot = ?", (step.id,)).fetchall()
        reader.allow(size * max(1, len(blobs)))  # without any, a series still has a row of NaN for this step
        readings = {
            values.text("a reading's name", name): values.array(data, step.shape, wanted) for name, data in blobs
        }
        yield Snapshot(step.step, step.seconds, step.loss, readings)
