"""If a record cannot be read, one sentence says so and what to do."""

import os
import pathlib
import re
import shutil
import sqlite3

import pytest

from doctor.record.runs import SITES, snapshot
from softscope.doctor.record import Record, RecordError, RecordNotFoundError, news, read_record
from softscope.doctor.record.problems import reasons
from softscope.doctor.record.schema import VERSION


@pytest.fixture
def path(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        for step in range(30):
            record.add(snapshot(step))
    return tmp_path / "run.db"


def refused(path, reason, words):
    for reader in (read_record, news):
        with pytest.raises(RecordError, match=re.escape(words)) as caught:
            reader(path)
        assert caught.value.reason == reason
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert ";" in str(caught.value) or ":" in str(caught.value), "no way out"


def alter(path, *statements):
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def test_missing(tmp_path):
    refused(tmp_path / "run.db", "missing", "start the run first")
    with pytest.raises(FileNotFoundError):
        read_record(tmp_path / "run.db")
    assert issubclass(RecordNotFoundError, ValueError)
    assert os.listdir(tmp_path) == []


def test_a_folder(tmp_path):
    refused(tmp_path, "folder", "is a folder; name the record in it")


def test_nothing_in_it(tmp_path):
    (tmp_path / "run.db").touch()
    refused(tmp_path / "run.db", "empty", "has not begun to record; try again in a moment")


@pytest.mark.parametrize(
    "content", [b"hello", b"step,loss\n" * 1000, bytes(range(256)) * 64], ids=["text", "csv", "bytes"]
)
def test_another_kind_of_file(tmp_path, content):
    (tmp_path / "run.db").write_bytes(content)
    refused(tmp_path / "run.db", "foreign", "is no softscope record; name the file that was given to")
    assert (tmp_path / "run.db").read_bytes() == content


def test_another_database(tmp_path):
    alter(tmp_path / "run.db", "CREATE TABLE t (x)")
    refused(tmp_path / "run.db", "foreign", "is no softscope record")


def test_another_version(path):
    alter(path, f"PRAGMA user_version = {VERSION + 1}")
    refused(path, "newer", f"of version {VERSION + 1}, and this softscope reads up to version {VERSION}; update")
    alter(path, "PRAGMA user_version = 0")
    refused(path, "older", "read it with the softscope that wrote it")
    before = path.read_bytes()
    with pytest.warns(UserWarning, match="of version 0.*training goes on without a record"):
        Record(path).close()
    assert path.read_bytes() == before


def test_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "damaged", "is damaged (")


def test_a_table_is_gone(path):
    alter(path, "DROP TABLE readings")
    refused(path, "damaged", "no such table: readings")


def test_a_blob_is_short(path):
    alter(path, "UPDATE readings SET data = x'00000000'")
    refused(path, "damaged", "is damaged (")


def test_locked(path, monkeypatch):
    from softscope.doctor.record import file

    monkeypatch.setattr(file, "_READER_WAITS", 0.0)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    refused(path, "unreadable", "cannot be read (database is locked); try again")
    database.close()


def test_the_record_of_a_killed_run_on_a_read_only_place(path, tmp_path):
    """In WAL mode without its log, SQLite by itself would want to write next to the file."""
    alter(path, "PRAGMA journal_mode = WAL")
    folder = tmp_path / "read-only"
    folder.mkdir()
    shutil.copy(path, folder / "run.db")
    folder.chmod(0o500)
    try:
        assert len(read_record(folder / "run.db").snapshots) == 30
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs, which Windows lacks")
def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "run.db")
    refused(tmp_path / "run.db", "special", "is a pipe or a device, not a file; name the file that the run writes")


def test_something_was_added(path):
    alter(path, "CREATE VIEW extra AS SELECT 1")
    refused(path, "altered", "holds a view named extra, which softscope does not write; use the original")


def test_a_value_too_large(path):
    alter(path, "UPDATE parts SET sites = zeroblob(40000000)")
    refused(path, "excessive", "more than a record of its size can hold (a value of over 33554432 bytes)")


def test_a_killed_write(path, tmp_path):
    """Without WAL, a write that was killed leaves a journal, which only a writer may apply."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE readings SET data = zeroblob(3000)")
    for name in ("run.db", "run.db-journal"):
        shutil.copy(tmp_path / name, tmp_path / f"copy of {name}")
    database.close()
    for name in ("run.db", "run.db-journal"):
        shutil.move(tmp_path / f"copy of {name}", tmp_path / name)
    refused(path, "unfinished", "was being written when its run was killed, and")


def test_every_reason_is_met():
    met = set(re.findall(r'refused\(.*?, "(\w+)"', pathlib.Path(__file__).read_text("utf-8")))
    assert met == set(reasons()) - {"part"}  # which is tested with the parts
