"""One record of a run on several ranks: killed, resumed with another number of them, and with a rank that is gone."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from softscope.doctor.record import RecordError, news, read_record

SCRIPT = Path(__file__).with_name("recording.py")


def started(folder: Path, ranks: int, steps: int, first_step: int = 0, dies: int = -1) -> list[Any]:
    """The processes of one launch."""
    store = f"store{len(list(folder.iterdir()))}"
    shared = os.environ | {"WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    command = [sys.executable, str(SCRIPT), str(folder), store, *map(str, (steps, first_step, dies))]
    return [
        subprocess.Popen(command, env=shared | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]


def ended(processes: list[Any]) -> list[str]:
    """What each process said."""
    return [process.communicate(timeout=120)[1] for process in processes]


def killed_after(path: Path, step: int, processes: list[Any]) -> int:
    """Kill all of them once this step is in the record; return the last step in it."""
    give_up = time.monotonic() + 120
    while True:
        with contextlib.suppress(RecordError):
            seen = news(path)
            if seen.snapshots and seen.snapshots[-1].step >= step:
                break
        assert time.monotonic() < give_up
        assert all(process.poll() is None for process in processes), ended(processes)
        time.sleep(0.02)
    for process in processes:
        process.kill()
    ended(processes)
    return news(path).snapshots[-1].step


def sessions(path: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [json.loads(facts) for (facts,) in database.execute("SELECT facts FROM sessions ORDER BY id")]


def test_a_run_that_is_killed_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    first = killed_after(path, 5, started(tmp_path, 2, 1000))
    assert news(path).ended is None
    again = first - 2  # of a checkpoint before that
    second = killed_after(path, again + 5, started(tmp_path, 1, 1000, again))
    four = started(tmp_path, 4, 4, second + 1)
    told = ended(four)
    assert [process.returncode for process in four] == [0] * 4, told
    assert not any("RecordWarning" in one for one in told), told
    found = read_record(path)
    by_ranks = [2.0] * again + [1.0] * (second + 1 - again) + [4.0] * 4
    assert [(s.step, s.loss) for s in found.snapshots] == list(enumerate(by_ranks))
    assert found.facts["parts"] == 1
    assert [one["writer"]["ranks"] for one in sessions(path)] == [2, 1, 4]
    assert [one.get("ranks", {}).get("size") for one in sessions(path)] == [2, None, 4]
    assert found.facts["ranks"]["behind"] == {}
    assert news(path).ended == ""
    assert [name.name for name in tmp_path.glob("*.db")] == ["run.db"]  # though every rank has named it


@pytest.mark.parametrize("dies", [0, 3])
def test_the_record_tells_which_rank_was_last_read_when(tmp_path: Path, dies: int) -> None:
    processes = started(tmp_path, 3, 8, 100, dies)
    told = ended(processes)
    assert [process.returncode for process in processes] == [0, 0, -9], told
    seen = [json.loads((tmp_path / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    last = seen[0]["last"]
    assert last[:2] == [7, 7]
    assert last[2] < dies
    found = read_record(tmp_path / "run.db").facts["ranks"]
    assert found == {"size": 3, "behind": {"2": None if last[2] < 0 else 100 + last[2]}, "bytes": seen[1]["sent"][-1]}
