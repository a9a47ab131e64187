"""Exports a record as a table for other tools: CSV, JSON or Parquet, one row per step, site, head and reading."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import math
import os
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softscope.doctor.read.snapshot import Array, History, Snapshot

COLUMNS = ("step", "site", "head", "reading", "value")
SCHEMA_VERSION = 1


def export(history: History, path: str | os.PathLike[str]) -> None:
    """Write a history to a .csv, .json or .parquet file; Parquet needs pyarrow.

    Rows are `step, site, head, reading, value`. "loss" and "seconds" belong to no site, so their site and head are
    empty. NaN is an empty cell in CSV and null in JSON; infinities are "inf" and "-inf". The write is atomic: the file
    appears whole or not at all.

    >>> import pathlib, tempfile
    >>> from softscope.doctor import History, Site, Snapshot
    >>> site = Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)
    >>> read = Snapshot(0, 0.5, None, {"peak": np.array([[0.25, 0.5]], np.float32)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(History((site,), (read,)), path := pathlib.Path(folder, "run.csv"))
    ...     print(path.read_text("utf-8"))
    step,site,head,reading,value
    0,,,seconds,0.5
    0,encoder.0,0,peak,0.25
    0,encoder.0,1,peak,0.5
    <BLANKLINE>
    """
    path = pathlib.Path(path)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise ValueError(f"path must end in one of {', '.join(_WRITERS)}, but got {path}; rename it")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(history, beside)
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()


def suffixes() -> tuple[str, ...]:
    """The file suffixes that `export` supports."""
    return tuple(_WRITERS)


def _blocks(history: History, snapshot: Snapshot) -> Iterator[tuple[str, str, Array]]:
    """One snapshot as (site, reading, value of each head)."""
    for index, site in enumerate(history.sites):
        for name, reading in snapshot.readings.items():
            yield site.name, name, reading[index, : site.heads]


def _whole(snapshot: Snapshot) -> Iterator[tuple[str, float]]:
    """The values of a snapshot that concern the whole model."""
    yield "seconds", snapshot.seconds
    if snapshot.loss is not None:
        yield "loss", snapshot.loss


def _csv(history: History, path: pathlib.Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for snapshot in history.snapshots:
            rows.writerows((snapshot.step, "", "", name, _cell(value)) for name, value in _whole(snapshot))
            for site, name, values in _blocks(history, snapshot):
                rows.writerows((snapshot.step, site, head, name, _cell(value)) for head, value in enumerate(values))


def _cell(value: Any) -> str:
    """The shortest text that parses back to the same float32 (or float64, for a loss)."""
    return "" if np.isnan(value) else str(value)


def _json(history: History, path: pathlib.Path) -> None:
    head = {
        "schema": "softscope.record",
        "schema_version": SCHEMA_VERSION,
        "facts": history.facts,
        "sites": [_strict(dataclasses.asdict(site)) for site in history.sites],
        "unseen": [(module, str(why)) for module, why in history.unseen],
        "columns": COLUMNS,
    }
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head, allow_nan=False, indent=1)[:-2] + ',\n "rows": [')
        between = "\n"
        for snapshot in history.snapshots:
            for row in _json_rows(history, snapshot):
                file.write(f"{between}  {json.dumps(row, allow_nan=False)}")
                between = ",\n"
        file.write("\n ]\n}\n")


def _json_rows(history: History, snapshot: Snapshot) -> Iterator[list[Any]]:
    for name, value in _whole(snapshot):
        yield [snapshot.step, None, None, name, _number(value)]
    for site, name, values in _blocks(history, snapshot):
        for head, value in enumerate(values):
            yield [snapshot.step, site, head, name, _number(float(str(value)))]  # 0.1, not 0.10000000149


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _strict(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if isinstance(value, float) else value for name, value in row.items()}


def _parquet(history: History, path: pathlib.Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError("a .parquet file needs pyarrow: pip install 'softscope[parquet]'") from None

    word = pa.dictionary(pa.int32(), pa.string())
    types = (pa.int64(), word, pa.int32(), word, pa.float32())
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)), {"softscope": json.dumps(history.facts)})
    with parquet.ParquetWriter(path, schema) as writer:
        for snapshot in history.snapshots:
            whole = [(snapshot.step, None, None, name, value) for name, value in _whole(snapshot)]
            rows = [
                (snapshot.step, site, head, name, value)
                for site, name, values in _blocks(history, snapshot)
                for head, value in enumerate(values.tolist())
            ]
            columns = zip(*whole, *rows, strict=True)
            arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


_WRITERS: dict[str, Callable[[History, pathlib.Path], None]] = {".csv": _csv, ".json": _json, ".parquet": _parquet}
