"""A group that does not fit the model: one sentence on every rank, and no rank waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from distributed import refused
from distributed.ranks import Ranks


def test_ranks_with_different_models(four: Ranks) -> None:
    for kind, told in four.run(refused.other_model):
        assert kind == "ValueError"
        assert "group must have the same model on every rank, but rank 3 differs from rank 0" in told


def test_ranks_that_read_different_steps(four: Ranks) -> None:
    for kind, told in four.run(refused.other_schedule):
        assert kind == "ValueError"
        assert "the same every, max_rows and seed on every rank, but rank 1 differs from rank 0" in told


def test_trainings_own_store_keeps_its_timeout(two: Ranks) -> None:
    for before, after in two.run(refused.store_timeout):
        assert before == after


def test_a_rank_that_comes_late_is_waited_for(four: Ranks) -> None:
    assert four.run(refused.comes_late) == [""] * 4


def test_shards_of_parameters_are_no_heads(two: Ranks) -> None:
    assert two.run(refused.shards_of_the_layers)[0] == [4, 4]


def test_a_trial_on_one_rank_waits_for_nobody(two: Ranks) -> None:
    copies, shards = two.run(refused.trials, timeout=60)[0]
    assert copies == "HeadTrial"
    assert "its parameters are DTensors, shared out among ranks; gather them" in shards


def test_a_rank_that_does_not_come(four: Ranks) -> None:
    for rank, (kind, told, seconds) in enumerate(four.run(refused.missing)):
        if rank != 1:
            assert kind == "RuntimeError"
            assert "must be entered on every rank of the group, but of 4 not all came" in told
        assert seconds < 60


def test_probes_one_after_and_inside_another(two: Ranks) -> None:
    assert two.run(refused.twice) == [3, 0]


def test_some_of_the_ranks(four: Ranks) -> None:
    assert four.run(refused.part_of_the_ranks) == [-1, 1, -1, 0]


def test_a_model_without_attention(two: Ranks) -> None:
    assert two.run(refused.nothing_heard) == [[0, []]] * 2


NEVER_LEFT = """
import sys
sys.path.insert(0, {tests!r})
from torch import distributed as dist
from distributed import refused
dist.init_process_group("gloo", init_method="file://{store}", rank=int(sys.argv[1]), world_size=2)
print(refused.never_left())
"""


def test_a_probe_that_is_never_left_does_not_hold_the_program(tmp_path: Path) -> None:
    code = NEVER_LEFT.format(tests=str(Path(__file__).parents[1]), store=f"{tmp_path}/store")
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(rank)], stdout=subprocess.PIPE, text=True) for rank in (0, 1)
    ]
    assert [process.communicate(timeout=100)[0].strip() for process in started] == ["fine", "fine"]
    assert [process.returncode for process in started] == [0, 0]


def test_without_the_package_for_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    from softscope.doctor.ranks import sketch

    sketch._mapping.cache_clear()
    monkeypatch.setitem(sys.modules, "ddsketch.mapping", None)
    with pytest.raises(ImportError, match=r"pip install 'softscope\[doctor\]'"):
        sketch.available()
