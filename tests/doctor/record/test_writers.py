"""Several writers of one file: the last to open it records, the others say once that they stop, no run is hidden."""

import contextlib
import dataclasses
import os
import sqlite3
import warnings

import pytest

from doctor.record.runs import SITES, finished, one_warning, process, snapshot
from softscope.doctor.record import Record, file, news, read_record

OTHER = (dataclasses.replace(SITES[0], heads=2),)
LOST = "another run records into it now; give each run its own file"


def losses(path, *part):
    return [s.loss for s in read_record(path, **dict(zip(["part"], part, strict=False))).snapshots]


def dumped(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


CHANGES = {
    "sites": lambda record: record.sites(SITES),
    "sites of another model": lambda record: record.sites(OTHER),
    "more sites": lambda record: record.sites((*SITES, dataclasses.replace(SITES[0], name="later"))),
    "add": lambda record: record.add(snapshot(9)),
    "unseen": lambda record: record.unseen([("module", "not ours")]),
    "note": lambda record: record.note({"writer": "not ours"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("begun", [False, True], ids=["empty", "begun"])
def test_no_change_of_an_earlier_writer_reaches_the_file(tmp_path, change, begun):
    """`sites()` of the earlier writer used to begin an empty part, and the whole run was "no readings yet"."""
    path = tmp_path / "run.db"
    first = Record(path)
    if begun:
        first.sites(SITES[:1])
        first.unseen([("module", "ours")])
    second = Record(path)
    second.sites(SITES)
    second.unseen([("module", "ours")])
    second.note({"writer": "ours"})
    second.add(snapshot(1, loss=0.5))
    before = dumped(path)
    with one_warning(LOST):
        CHANGES[change](first)
        CHANGES[change](first)
    first.close()
    assert dumped(path) == before
    assert losses(path) == [0.5]
    assert news(path).ended is None  # the second still records
    second.add(snapshot(2, loss=0.25))
    second.close()
    assert losses(path) == [0.5, 0.25]


def test_an_earlier_writer_that_only_closes_has_lost_nothing_and_says_nothing(tmp_path):
    first = Record(tmp_path / "run.db")
    first.sites(SITES)
    first.add(snapshot(0))
    with Record(tmp_path / "run.db") as second, warnings.catch_warnings(record=True) as caught:
        first.close("KeyboardInterrupt")
        second.add(snapshot(1))
        assert news(tmp_path / "run.db").ended is None
    assert caught == []
    assert len(losses(tmp_path / "run.db")) == 2


def test_a_second_process_takes_over(tmp_path):
    path = tmp_path / "run.db"
    first = Record(path)
    first.sites(SITES)
    first.add(snapshot(0, loss=1.0))
    finished(
        "record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(1, loss=2.0)); record.close()", path
    )
    with one_warning(LOST):
        first.sites(OTHER)
        first.add(snapshot(2, loss=3.0))
    first.close()
    assert losses(path) == [1.0, 2.0]
    assert news(path).ended == ""


def test_a_killed_run_leaves_nothing_that_keeps_the_next_from_recording(tmp_path):
    path = tmp_path / "run.db"
    running = process(
        "record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(0)); print(1, flush=True); "
        "time.sleep(60)",
        path,
    )
    running.stdout.readline()
    running.kill()
    running.communicate(timeout=60)
    with warnings.catch_warnings(record=True) as caught, Record(path) as record:
        assert record.last_step == 0
        record.sites(SITES)
        record.add(snapshot(1))
    assert caught == []
    assert [s.step for s in read_record(path).snapshots] == [0, 1]


def test_a_run_that_starts_over_does_not_hide_the_one_before(tmp_path):
    path = tmp_path / "run.db"
    for loss in (1.0, 2.0):
        with Record(path) as record:
            record.sites(SITES)
            record.unseen([(f"module {loss}", "not seen")])
            for step in (0, 10):
                record.add(snapshot(step, loss=loss))
    assert losses(path) == losses(path, -1) == [2.0, 2.0]
    assert losses(path, 0) == [1.0, 1.0]
    assert ("module 2.0", "not seen") in [(name, str(why)) for name, why in read_record(path).unseen]
    with Record(path) as record:  # also within one run
        record.sites(SITES)
        for loss in (3.0, 4.0):
            for step in (0, 10):
                record.add(snapshot(step, loss=loss))
    assert [losses(path, part) for part in (-3, -2, -1)] == [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]


def test_a_run_that_died_before_its_first_reading_does_not_hide_the_one_before(tmp_path):
    path = tmp_path / "run.db"
    with Record(path) as record:
        record.sites(SITES)
        record.add(snapshot(0, loss=1.0))
    with one_warning("a model that differs"), Record(path) as record:
        record.sites(OTHER)
    assert losses(path) == [1.0]
    assert losses(path, -1) == []


@pytest.mark.parametrize("again", [False, True], ids=["removed", "replaced"])
def test_a_file_that_is_removed_or_replaced_is_said_and_the_new_one_left_alone(tmp_path, again):
    """The readings used to go, without a word, into a file that no path named."""
    path = tmp_path / "run.db"
    record = Record(path)
    record.sites(SITES)
    record.add(snapshot(0))
    for name in os.listdir(tmp_path):
        (tmp_path / name).unlink()
    if again:
        with Record(path) as other:
            other.sites(SITES)
            other.add(snapshot(7))
    with one_warning("it was removed or replaced"):
        record.add(snapshot(1))
        record.add(snapshot(2))
    record.close()
    assert path.exists() == again
    if again:
        assert [s.step for s in read_record(path).snapshots] == [7]


def test_a_working_directory_that_is_gone_does_not_end_the_training(tmp_path):
    out, err = finished(
        """
        import os
        os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])
        with Record("run.db") as record:
            record.sites(SITES); record.add(snapshot(0))
        print("trained")
        """,
        tmp_path / "gone",
    )
    assert out == "trained\n"
    assert err.count("RecordWarning") == 1


def test_another_working_directory_is_no_other_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with warnings.catch_warnings(record=True) as caught, Record("run.db") as record:
        record.sites(SITES)
        monkeypatch.chdir(tmp_path / "elsewhere")
        record.add(snapshot(0))
    assert caught == []
    assert len(losses(tmp_path / "run.db")) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
@pytest.mark.parametrize("closed", [False, True], ids=["open in the parent", "closed by the parent before"])
def test_a_fork_may_open_only_what_its_parent_does_not_record(tmp_path, closed):
    """SQLite takes the parent's locks for its own: once the parent closed, the child's readings were gone."""
    out, err = finished(
        f"""
        import os
        record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(0))
        if {closed}:
            record.close()
        begun, done = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            own = Record(sys.argv[1]); own.sites(SITES); own.add(snapshot(1))
            os.write(begun[1], b"x"); os.read(done[0], 1)
            own.add(snapshot(2)); own.close(); os._exit(0)
        os.read(begun[0], 1); record.close(); os.write(done[1], b"x"); os.waitpid(child, 0)
        print("trained")
        """,
        tmp_path / "run.db",
    )
    assert out == "trained\n"
    steps = [s.step for s in read_record(tmp_path / "run.db").snapshots]
    if closed:
        assert (steps, err) == ([0, 1, 2], "")
    else:
        assert steps == [0]
        assert err.count("RecordWarning") == 1
        assert "the process that this one was forked from records into it" in err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
def test_a_fork_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held(tmp_path):
    out, _ = finished(
        """
        import os, signal, threading
        record = Record(sys.argv[1]); record.sites(SITES)
        held, over = threading.Event(), threading.Event()
        def hold():
            with record._lock:
                held.set(); over.wait()
        threading.Thread(target=hold).start(); held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            record.add(snapshot(0)); record.last_step; record.close(); os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); over.set()
        """,
        tmp_path / "run.db",
    )
    assert out == "7\n"


def test_a_file_that_is_locked_at_the_start_is_waited_for(tmp_path, monkeypatch):
    """A lock of half a second at the start used to cost the record of the whole run."""
    monkeypatch.setattr(file, "_WRITER_WAITS", 0.0)
    path = tmp_path / "run.db"
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with one_warning(r"cannot be written \(database is locked\).*readings wait in memory"):
        record = Record(path)
        record.sites(SITES)
        record.add(snapshot(0))
        assert record.last_step is None
    other.execute("ROLLBACK")
    other.close()
    record.add(snapshot(1))
    record.close()
    assert [s.step for s in read_record(path).snapshots] == [0, 1]
    assert news(path).ended == ""


def test_readings_that_waited_when_another_took_over_are_said_to_be_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_WRITER_WAITS", 0.0)
    record = Record(tmp_path / "run.db")
    record.sites(SITES)
    lock = sqlite3.connect(tmp_path / "run.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    with one_warning("wait in memory"):
        record.add(snapshot(0))
    lock.execute("ROLLBACK")
    lock.close()
    second = Record(tmp_path / "run.db")
    with one_warning(LOST):
        record.close()
    second.close()


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_snapshot_that_no_table_can_hold_stops_the_record_at_once(tmp_path, seconds):
    """It used to count as a full disk, and 255 good snapshots waited behind it."""
    record = Record(tmp_path / "run.db")
    record.sites(SITES)
    with one_warning("seconds must be a finite number.*training goes on without a record"):
        record.add(dataclasses.replace(snapshot(0), seconds=seconds))
    assert not record._queue


def test_sites_that_could_not_be_read_back_are_not_written(tmp_path):
    with one_warning("a site's name must be text of at most 1000 characters, but got 10000000"):
        record = Record(tmp_path / "run.db")
        record.sites([dataclasses.replace(SITES[0], name="x" * 10**7)])
    record.close()
    assert read_record(tmp_path / "run.db").sites == ()


def test_reasons_of_any_length_and_kind_are_written_as_far_as_they_fit(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.unseen([("m" * 5000, "w" * 50_000), ("half\ud800", "pair\udfff")])
        record.add(snapshot(0))
    (long, _), (half, why) = read_record(tmp_path / "run.db").unseen
    assert len(long) == 1000
    assert (half, str(why)) == ("half\\ud800", "pair\\udfff")
