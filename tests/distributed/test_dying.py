"""Whatever happens to a rank, the others train on as if nobody had watched, and say what they no longer see."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("dying.py")
RANKS, STEPS = 3, 12


def run(folder: Path, kind: str, when: float = 5) -> tuple[list[Any], list[int]]:
    """What each rank tells, None if it died, and how each ended."""
    folder.mkdir(exist_ok=True)
    shared = os.environ | {"WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    command = [sys.executable, str(SCRIPT), kind, str(when), str(folder)]
    started = [
        subprocess.Popen(command, env=shared | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    told = [process.communicate(timeout=120)[1] for process in started]
    found = []
    for rank in range(RANKS):
        path = folder / f"{rank}.json"
        found.append(json.loads(path.read_text(encoding="utf-8")) if path.exists() else None)
    ends = [process.returncode for process in started]
    assert found[0] is not None, told[0]
    return found, ends


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run in which nothing happens."""
    found, ends = run(tmp_path_factory.mktemp("fine"), "nothing")
    assert ends == [0] * RANKS
    assert found[0]["steps"] == list(range(STEPS))
    assert found[0]["ranks"] == [STEPS - 1] * RANKS
    assert not any(rank["told"] for rank in found)
    return found


def unharmed(found: list[Any], ends: list[int], fine: Any) -> None:
    """The other ranks have trained as they would have, were not held up, and have read what there was to read."""
    assert ends[:-1] == [0] * (RANKS - 1)
    assert [rank["total"] for rank in found[:-1]] == [rank["total"] for rank in fine[:-1]]
    assert not any(rank["held"] for rank in found[:-1])  # no step took as long as the probe's patience
    assert found[0]["steps"] == list(range(STEPS))
    assert found[0]["ranks"][:-1] == [STEPS - 1] * (RANKS - 1)
    assert all(len(rank["told"]) <= 1 for rank in found[:-1])


def test_a_rank_that_dies(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "dies")
    unharmed(found, ends, fine)
    assert ends[-1] == -9
    assert found[0]["ranks"][-1] <= 4  # what was still on its way when it died is lost
    assert "rank 2 is" in found[0]["told"][0]  # no longer read, or not heard from, if no message was on its way


def test_a_rank_that_raises(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "raises")
    unharmed(found, ends, fine)
    assert ends[-1] == 1
    assert found[0]["ranks"][-1] == 4


def test_a_rank_that_hangs(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "hangs")
    unharmed(found, ends, fine)
    assert found[0]["ranks"][-1] == 4
    assert "rank 2 is not heard from" in found[0]["told"][0]
    assert "rank 0 no longer listens" in found[-1]["told"][0]
    assert found[-1]["total"] == fine[-1]["total"]


def test_a_rank_that_is_slow_is_waited_for(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "slow")
    unharmed(found, ends, fine)
    assert found[0]["ranks"] == [STEPS - 1] * RANKS
    assert not any(rank["told"] for rank in found)


def test_a_rank_that_comes_back_is_read_again(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "returns")
    assert ends == [0] * RANKS
    assert [rank["total"] for rank in found] == [rank["total"] for rank in fine]
    assert found[0]["steps"] == list(range(STEPS))
    assert "rank 2 is not heard from" in found[0]["told"][0]
    assert found[0]["ranks"][-1] > 5  # the step at which it went away


def test_a_rank_that_makes_a_step_less(tmp_path: Path, fine: Any) -> None:
    found, ends = run(tmp_path, "skips")
    unharmed(found, ends, fine)
    assert found[0]["ranks"][-1] == STEPS - 2
    assert not any(rank["told"] for rank in found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_rank_killed_at_a_random_moment(tmp_path: Path, seed: int, fine: Any) -> None:
    found, ends = run(tmp_path, "dies", random.Random(seed).uniform(0.0, STEPS - 0.5))
    unharmed(found, ends, fine)
