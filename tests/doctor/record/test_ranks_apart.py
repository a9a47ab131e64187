"""Ranks that write the same file without a group: each finds its own, is told so, and nothing is lost."""

import json
import os
import platform
import re
import sqlite3

import pytest

from doctor.record.runs import SITES, one_warning, process, snapshot
from softscope.doctor.record import Record, news, read_record, writer

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
RUN = """
import pathlib
from softscope.doctor.record import file
file._WRITER_WAITS = 30.0  # a busy disk is another story
path, first, last, rank, ranks = sys.argv[1], *map(int, sys.argv[2:])
with Record(path) as record:
    record.sites(SITES)
    for step in range(first, last):
        record.add(snapshot(step, loss=float(rank)))
        if step == first:  # until every rank has begun
            pathlib.Path(f"{path}.{rank}").touch()
            while not all(pathlib.Path(f"{path}.{other}").exists() for other in range(ranks)):
                time.sleep(0.01)
    print(record.path)
"""


def env(rank=None, ranks=2, **more):
    """This environment, but as of a rank."""
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    return kept | ({} if rank is None else {"RANK": str(rank), "WORLD_SIZE": str(ranks)}) | more


def launched(path, first, last, ranks=2, **more):
    """What each rank printed, when all run at the same time."""
    for rank in range(ranks):
        path.with_name(f"{path.name}.{rank}").unlink(missing_ok=True)
    running = [process(RUN, path, first, last, rank, ranks, env=env(rank, ranks, **more)) for rank in range(ranks)]
    told = [one.communicate(timeout=60) for one in running]
    assert [one.returncode for one in running] == [0] * ranks, told
    return told


def read(path):
    found = read_record(path)
    return [s.step for s in found.snapshots], {s.loss for s in found.snapshots}


@pytest.mark.parametrize("more", [{}, {"MASTER_ADDR": "node-7", "MASTER_PORT": "29500"}], ids=["parent", "master"])
def test_each_rank_has_its_own_file_and_both_are_complete(tmp_path, more):
    """The last to open the file used to take it over, and the other's readings were lost."""
    path = tmp_path / "run.db"
    told = launched(path, 0, 20, **more)
    files = {int(loss): (name, steps) for name in tmp_path.glob("*.db") for steps, (loss,) in [read(name)]}
    assert {rank: steps for rank, (_, steps) in files.items()} == {0: list(range(20)), 1: list(range(20))}
    kept = next(rank for rank in (0, 1) if files[rank][0] == path)
    other = 1 - kept
    assert files[other][0] == tmp_path / f"run.rank{other}.db"
    assert [out.strip() for out, _ in told] == [str(files[rank][0]) for rank in (0, 1)]
    assert told[kept][1] == ""
    assert told[other][1].count("RecordWarning") == 1
    assert (
        f"rank {kept} already records into {path}, so rank {other} records into {tmp_path / f'run.rank{other}.db'}; "
        "softscope.probe(model, group=…) reads all ranks as one\n"
    ) in told[other][1]
    assert all(news(name).ended == "" for name, _ in files.values())


def test_a_restarted_launch_goes_on_where_each_rank_was(tmp_path):
    path = tmp_path / "run.db"
    launched(path, 0, 10, TORCHELASTIC_RUN_ID="a", TORCHELASTIC_RESTART_COUNT="0")
    before = {name: read(name)[1] for name in tmp_path.glob("*.db")}
    launched(path, 10, 20, TORCHELASTIC_RUN_ID="a", TORCHELASTIC_RESTART_COUNT="1")
    assert {name: read(name) for name in tmp_path.glob("*.db")} == {
        name: (list(range(20)), ranks) for name, ranks in before.items()
    }
    assert all(read_record(name).facts["sessions"] == 2 for name in before)


@pytest.fixture
def rank(monkeypatch):
    """Make this process a rank."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def become(mine, ranks=2):
        monkeypatch.setenv("RANK", str(mine))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))

    return become


def test_a_rank_that_has_nothing_to_record_makes_no_file(tmp_path, rank):
    """With a group, every rank may open the record, and readings come on the first alone."""
    rank(1)
    with Record(tmp_path / "run.db") as record:
        assert record.last_step is None
        assert not list(tmp_path.iterdir())
    rank(0)
    with Record(tmp_path / "run.db") as first:
        first.sites(SITES)
        first.add(snapshot(7))
        rank(1)
        with Record(tmp_path / "run.db") as record:
            assert record.last_step == 7
    assert [name.name for name in tmp_path.iterdir()] == ["run.db"]
    assert read_record(tmp_path / "run.db").facts["sessions"] == 1


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
def test_whoever_comes_first_has_the_file_even_if_it_has_finished(tmp_path, rank, ended):
    rank(1)
    first = Record(tmp_path / "run.db")
    first.sites(SITES)
    first.add(snapshot(0))
    if ended:
        first.close()
    rank(0)
    with one_warning("rank 1 already records into .*run.db, so rank 0 records into .*run.rank0.db"):
        second = Record(tmp_path / "run.db")
        second.sites(SITES)
        second.add(snapshot(1))
    assert second.path == tmp_path / "run.rank0.db"
    first.close()
    second.close()
    assert [read(tmp_path / name)[0] for name in ("run.db", "run.rank0.db")] == [[0], [1]]


def test_after_a_restart_a_rank_that_comes_first_leaves_the_file_to_its_rank(tmp_path, rank, monkeypatch):
    for launch, order in (("0", (0, 1)), ("1", (1, 0))):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", launch)
        opened = []
        with one_warning("rank 0 already records into .*run.db, so rank 1 records into .*run.rank1.db"):
            for mine in order:
                rank(mine)
                opened.append(Record(tmp_path / "run.db"))
                opened[-1].sites(SITES)
                opened[-1].add(snapshot(int(launch), loss=float(mine)))
        for record in opened:
            record.close()
    assert [read(tmp_path / name) for name in ("run.db", "run.rank1.db")] == [([0, 1], {0.0}), ([0, 1], {1.0})]


def test_the_same_rank_goes_on_in_its_file(tmp_path, rank):
    rank(1)
    for step in range(3):
        with Record(tmp_path / "run.db") as record:
            record.sites(SITES)
            record.add(snapshot(step))
    assert [name.name for name in tmp_path.iterdir()] == ["run.db"]
    assert read(tmp_path / "run.db")[0] == [0, 1, 2]


def test_with_torch_distributed_its_rank_counts(tmp_path, rank, monkeypatch):
    from torch import distributed as dist

    rank(3, 4)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert writer.rank() == (0, 1)
    finally:
        dist.destroy_process_group()
    assert writer.rank() == (3, 4)
    for wrong in ("", "4", "-1", "x"):
        monkeypatch.setenv("RANK", wrong)
        assert writer.rank() is None


def test_a_session_tells_its_rank_but_neither_host_nor_environment(tmp_path, rank, monkeypatch):
    rank(0, 8)
    monkeypatch.setenv("MASTER_ADDR", "node-7.example.org")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "secret-name")
    with Record(tmp_path / "run.db"):
        pass
    found = read_record(tmp_path / "run.db").facts["writer"]
    assert (found["rank"], found["ranks"], found["process"]) == (0, 8, os.getpid())
    assert all(re.fullmatch("[0-9a-f]{12}", found[name]) for name in ("launch", "machine"))
    data = (tmp_path / "run.db").read_bytes()
    assert not any(word in data for word in (b"node-7", b"secret-name", platform.node().encode()))


STRANGE = {
    "list": "[]", "broken": "{", "writer": '{"writer": []}', "rank": '{"writer": {"rank": "x"}}', "deep": "[" * 10**5,
}  # fmt: skip


@pytest.mark.parametrize("facts", STRANGE.values(), ids=STRANGE)
def test_whatever_a_session_says_of_its_writer_the_next_records(tmp_path, rank, facts):
    rank(0)
    Record(tmp_path / "run.db").close()
    with sqlite3.connect(tmp_path / "run.db") as database:
        database.execute("UPDATE sessions SET facts = ?", (facts,))
    database.close()
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.add(snapshot(0))
    assert record.path == tmp_path / "run.db"
    with sqlite3.connect(tmp_path / "run.db") as database:
        (last,) = database.execute("SELECT facts FROM sessions ORDER BY id DESC LIMIT 1").fetchone()
    database.close()
    assert json.loads(last)["writer"]["rank"] == 0
    assert news(tmp_path / "run.db").snapshots[-1].step == 0
