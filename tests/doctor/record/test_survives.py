"""Killed runs, readers next to the writer, full disks, read-only locations, two writers."""

import os
import signal
import sqlite3
import subprocess
import warnings

import pytest

from doctor.record.runs import SITES, finished, one_warning, process, same, snapshot
from softscope.doctor.record import Record, file, news, read_record, write


def test_kill_9_loses_nothing_that_was_added(tmp_path):
    path = tmp_path / "run.db"
    endless = """
        record = Record(sys.argv[1]); record.sites(SITES)
        for step in range(10**9):
            record.add(snapshot(step))
            print(step, flush=True)
        """
    for _ in range(3):  # the next run continues from what the killed one left
        running = process(endless, path)
        told = [int(running.stdout.readline()) for _ in range(40)]
        running.send_signal(signal.SIGKILL)
        told += [int(line) for line in running.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        running.communicate(timeout=60)
        assert running.returncode == -signal.SIGKILL
        found = read_record(path)
        steps = [s.step for s in found.snapshots]
        assert steps == list(range(len(steps)))
        assert told[-1] <= steps[-1] <= told[-1] + 1  # one more may be in the file without having been printed yet
        assert same(found.snapshots[-1], snapshot(steps[-1]))
        assert news(path).ended is None
    assert read_record(path).facts["sessions"] == 3
    ok = sqlite3.connect(path)
    assert ok.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    ok.close()


def test_a_killed_record_can_be_copied_with_its_log(tmp_path):
    running = process(
        """
        record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(3))
        print(1, flush=True); time.sleep(60)
        """,
        tmp_path / "run.db",
    )
    running.stdout.readline()
    running.kill()
    running.communicate(timeout=60)
    (tmp_path / "copy").mkdir()
    for suffix in ("", "-wal"):
        (tmp_path / "copy" / f"run.db{suffix}").write_bytes((tmp_path / f"run.db{suffix}").read_bytes())
    assert [s.step for s in read_record(tmp_path / "copy" / "run.db").snapshots] == [3]


def test_read_from_another_process_while_it_is_written(tmp_path):
    path = tmp_path / "run.db"
    with Record(path) as record:
        record.sites(SITES)
        record.add(snapshot(0))
        reader = process(
            """
            from doctor.record.runs import same
            from softscope.doctor.record import read_record
            seen, looks = [], 0
            while not seen or seen[-1] < 299:
                seen = [s.step for s in read_record(sys.argv[1]).snapshots]
                assert seen == list(range(len(seen))), seen
                looks += 1
                print(seen[-1], flush=True)
            assert all(same(s, snapshot(s.step)) for s in read_record(sys.argv[1]).snapshots)
            print("looks", looks)
            """,
            path,
        )
        assert reader.stdout.readline()  # it is reading: now write at the same time
        for step in range(1, 300):
            record.add(snapshot(step))
        out, err = reader.communicate(timeout=120)
        assert reader.returncode == 0, err
        assert int(out.split()[-1]) >= 2
        assert record.last_step == 299
    assert len(read_record(path).snapshots) == 300


def test_a_reader_that_dawdles_does_not_hold_up_the_writer_or_its_end(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record = Record(tmp_path / "run.db")
        record.sites(SITES)
        record.add(snapshot(0))
        with file.reading(tmp_path / "run.db") as database:
            assert database.execute("SELECT count(*) FROM steps").fetchone() == (1,)
            record.add(snapshot(1))
            assert database.execute("SELECT count(*) FROM steps").fetchone() == (1,)  # a consistent snapshot
            record.close()
    assert caught == []
    assert len(read_record(tmp_path / "run.db").snapshots) == 2


def test_where_warnings_are_errors_the_training_goes_on_too(tmp_path):
    (tmp_path / "file").write_text("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = Record(tmp_path / "file" / "run.db")
        record.sites(SITES)
        record.add(snapshot(0))
        record.close()


FULL = """
    record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(0))
    import os
    limit = sum(os.path.getsize(sys.argv[1] + s) for s in ("", "-wal")) + 40_000
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    for step in range(1, 100):
        record.add(snapshot(step))
    if sys.argv[2] == "room again":
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        for step in range(100, 120):
            record.add(snapshot(step))
    record.close()
    print("trained")
    """


@pytest.mark.parametrize("then", ["stays full", "room again"])
def test_a_full_disk_is_nothing_recorded(tmp_path, then):
    out, err = finished(FULL, tmp_path / "run.db", then)
    assert out == "trained\n"
    assert err.count("RecordWarning") == 1, err
    assert "cannot be written (" in err
    assert "training goes on, and readings wait in memory for a while" in err
    steps = [s.step for s in read_record(tmp_path / "run.db").snapshots]
    assert steps == list(range(len(steps)))
    assert (len(steps) == 120) if then == "room again" else (2 <= len(steps) < 100)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root; run the tests as root in a container")
def test_a_full_filesystem_is_nothing_recorded(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here; a privileged container allows it")
    try:
        out, err = finished(
            "record = Record(sys.argv[1]); record.sites(SITES)\n"
            "for step in range(2000): record.add(snapshot(step))\n"
            "record.close(); print('trained')",
            small / "run.db",
        )
        assert (out, err.count("RecordWarning")) == ("trained\n", 1)
        assert "is full" in err
        assert len(read_record(small / "run.db").snapshots) > 10
    finally:
        subprocess.run(["umount", small], check=True)


def nothing_recorded(path, match):
    with one_warning(match) as caught:
        record = Record(path)
        record.sites(SITES)
        for step in range(5):
            record.add(snapshot(step))
        record.unseen([("a", "b")])
        assert record.last_step is None
        record.close()
    return str(caught[0].message)


def test_a_place_that_cannot_be_is_nothing_recorded(tmp_path):
    (tmp_path / "file").write_text("x")
    message = nothing_recorded(tmp_path / "file" / "run.db", "training goes on without a record")
    assert "run.db cannot be written (" in message
    nothing_recorded(tmp_path, "is a folder|training goes on")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; run the tests as another user")
def test_a_read_only_folder_is_nothing_recorded(tmp_path):
    tmp_path.chmod(0o500)
    nothing_recorded(tmp_path / "run.db", "training goes on without a record")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc, which Linux has")
def test_a_place_without_files_is_one_warning():
    nothing_recorded("/proc/self/run.db", "training goes on without a record")


@pytest.mark.parametrize("text", [b"step,loss\n0,1\n" * 100, b"SQLite format 3\0" + b"\0" * 100])
def test_what_is_no_record_is_left_as_it_is(tmp_path, text):
    (tmp_path / "run.db").write_bytes(text)
    nothing_recorded(tmp_path / "run.db", "training goes on without a record")
    assert (tmp_path / "run.db").read_bytes() == text


def test_the_database_of_others_is_left_as_it_is(tmp_path):
    database = sqlite3.connect(tmp_path / "run.db")
    database.execute("CREATE TABLE t (x)")
    database.close()
    before = (tmp_path / "run.db").read_bytes()
    assert "is no softscope record" in nothing_recorded(tmp_path / "run.db", "training goes on")
    assert (tmp_path / "run.db").read_bytes() == before


def test_without_wal_a_rollback_journal_and_nothing_recorded(tmp_path, monkeypatch):
    """A network filesystem has no shared memory. Neither does SQLite's dotfile VFS, which answers WAL the same way."""
    monkeypatch.setattr(file, "_VFS", "unix-dotfile")
    with one_warning("without SQLite's WAL mode.* a local path is better"):
        record = Record(tmp_path / "run.db")
        record.sites(SITES)
        for step in range(5):
            record.add(snapshot(step))
        assert not (tmp_path / "run.db-wal").exists()
        assert len(read_record(tmp_path / "run.db").snapshots) == 5
        record.close()
    assert all(same(s, snapshot(s.step)) for s in read_record(tmp_path / "run.db").snapshots)


def test_wal_that_is_promised_and_fails(tmp_path, monkeypatch):
    class Failing(sqlite3.Connection):
        def execute(self, sql, *rest):
            if sql == "PRAGMA journal_mode = WAL":
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *rest)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Failing, **k))
    with one_warning("without SQLite's WAL mode"):
        record = Record(tmp_path / "run.db")
    record.sites(SITES)
    record.add(snapshot(0))
    record.close()
    assert len(read_record(tmp_path / "run.db").snapshots) == 1


def test_a_lock_that_passes_costs_one_warning_and_no_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_WRITER_WAITS", 0.01)
    record = Record(tmp_path / "run.db")
    record.sites(SITES)
    other = sqlite3.connect(tmp_path / "run.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with one_warning(r"cannot be written \(database is locked\)"):
        for step in range(11):
            record.add(snapshot(step))
    other.execute("ROLLBACK")
    other.close()
    record.close()
    assert [s.step for s in read_record(tmp_path / "run.db").snapshots] == list(range(11))


def test_patience_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_WRITER_WAITS", 0.0)
    monkeypatch.setattr(write, "_PATIENCE", 8)
    record = Record(tmp_path / "run.db")
    record.sites(SITES)
    other = sqlite3.connect(tmp_path / "run.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with one_warning("cannot be written"):
        for step in range(20):
            record.add(snapshot(step))
    assert record._queue == []
    other.execute("ROLLBACK")
    other.close()
    record.add(snapshot(20))
    record.close()
    assert read_record(tmp_path / "run.db").snapshots == ()


def test_of_two_writers_the_newer_goes_on(tmp_path):
    first = Record(tmp_path / "run.db")
    first.sites(SITES)
    first.add(snapshot(0))
    second = Record(tmp_path / "run.db")
    second.sites(SITES)
    second.add(snapshot(1))
    with one_warning("another run records into it now; give each run its own file"):
        first.add(snapshot(50))
        first.add(snapshot(51))
    second.add(snapshot(2))
    second.close()
    first.close()
    assert [s.step for s in read_record(tmp_path / "run.db").snapshots] == [0, 1, 2]
    assert news(tmp_path / "run.db").ended == ""


def test_a_wrong_snapshot_is_nothing_recorded(tmp_path):
    wrong = snapshot(0)
    wrong.readings["peak"] = wrong.readings["peak"][0]
    with one_warning(r"must be \(sites, heads\) = \(2, 4\) or less, but got .*; call sites"):
        record = Record(tmp_path / "run.db")
        record.sites(SITES)
        record.add(wrong)
        record.add(snapshot(1))
    with one_warning("call sites"):
        Record(tmp_path / "other.db").add(snapshot(0))
