"""The export holds exactly what was recorded."""

import csv
import dataclasses
import json
import math
import os

import numpy as np
import pytest

from doctor.record.runs import SITES, history, same, snapshot
from softscope.doctor.read.snapshot import History, Snapshot
from softscope.doctor.record import Record, export, read_record
from softscope.doctor.record.export import COLUMNS, suffixes


def rebuilt(rows, sites=SITES):
    """Rebuild the snapshots from long-form rows alone."""
    names = [site.name for site in sites]
    steps = {}
    for step, site, head, reading, value in rows:
        whole, readings = steps.setdefault(step, ({}, {}))
        if site:
            cells = readings.setdefault(reading, np.full((len(sites), max(s.heads for s in sites)), np.nan, np.float32))
            cells[names.index(site), head] = value
        else:
            whole[reading] = value
    return [Snapshot(step, w["seconds"], w.get("loss"), r) for step, (w, r) in steps.items()]


def csv_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    for step, site, at, reading, value in rows:
        yield int(step), site, int(at) if at else None, reading, float(value or "nan")


def json_rows(path):
    document = json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)
    assert tuple(document["columns"]) == COLUMNS
    for *where, value in document["rows"]:
        yield *where, math.nan if value is None else float(value)


def parquet_rows(path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'softscope[parquet]'")
    table = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    assert json.loads(table.schema.metadata[b"softscope"])["a"] == 1
    yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


READERS = {".csv": csv_rows, ".json": json_rows, ".parquet": parquet_rows}


def odd():
    """NaN, infinities, subnormals, a NaN loss, and no loss."""
    extreme = np.array([[np.inf, -np.inf, np.nan, 1e-45], [0.1, 3.4e38, -0.0, np.nan]], np.float32)
    return dataclasses.replace(
        history(2),
        snapshots=(
            *history(2).snapshots,
            dataclasses.replace(snapshot(7, loss=math.nan), readings={"lse_min": extreme}),
            snapshot(8, loss=None, names=("peak",)),
        ),
    )


@pytest.mark.parametrize("suffix", READERS)
def test_the_same_again(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'softscope[parquet]'")
    wanted = odd()
    export(wanted, tmp_path / f"out{suffix}")
    found = rebuilt(READERS[suffix](tmp_path / f"out{suffix}"))
    assert len(found) == len(wanted.snapshots) == 4
    for a, b in zip(wanted.snapshots, found, strict=True):
        if suffix == ".parquet" and b.loss is not None:  # parquet has a single value column, in float32
            b = dataclasses.replace(b, loss=a.loss if np.float32(a.loss) == np.float32(b.loss) else b.loss)
        assert same(a, b)
    assert os.listdir(tmp_path) == [f"out{suffix}"]


def test_from_the_file_to_the_file(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        for step in range(4):
            record.add(snapshot(step))
    export(read_record(tmp_path / "run.db"), str(tmp_path / "out.CSV"))
    assert all(same(s, snapshot(s.step)) for s in rebuilt(csv_rows(tmp_path / "out.CSV")))


def test_heads_that_a_site_does_not_have_are_no_rows(tmp_path):
    export(history(1), tmp_path / "out.csv")
    rows = [row for row in csv_rows(tmp_path / "out.csv") if row[3] == "peak"]
    assert [(site, head) for _, site, head, *_ in rows] == [
        (site.name, head) for site in SITES for head in range(site.heads)
    ]


def test_json_says_what_it_is(tmp_path):
    export(history(1), tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert (document["schema"], document["schema_version"]) == ("softscope.record", 1)
    assert document["sites"][0]["name"] == "blocks.0.attention"
    assert document["sites"][1]["scale"] is None
    assert document["unseen"] == [["pooler", "no softmax seen"]]
    assert document["facts"] == {"a": 1}


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_nothing_to_export(tmp_path, suffix):
    export(History((), ()), tmp_path / f"out{suffix}")
    assert list(READERS[suffix](tmp_path / f"out{suffix}")) == []


def test_an_ending_that_is_not_known():
    with pytest.raises(ValueError, match=r"end in one of .csv, .json, .parquet, but got out.xlsx; rename it"):
        export(history(1), "out.xlsx")
    assert set(suffixes()) == set(READERS)


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'softscope\[parquet\]'"):
        export(history(1), tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == []


def test_a_failed_export_leaves_what_was_there(tmp_path):
    (tmp_path / "out.csv").write_text("before")
    broken = dataclasses.replace(history(1), snapshots=(history(1).snapshots[0], None))
    with pytest.raises(AttributeError):
        export(broken, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "before"
