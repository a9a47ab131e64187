"""Weights & Biases itself, offline: what its run's file holds."""

import warnings

import pytest

from doctor.events.played import GREAT, play
from doctor.judge.histories import history
from doctor.record.runs import one_warning
from doctor.sinks.wandb_file import written
from softscope.doctor.sinks import WandB

wandb = pytest.importorskip("wandb", reason="needs wandb: pip install wandb")
SITE = "softscope/layers.0.attention"


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path))
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True, disable_git=True)
    with warnings.catch_warnings(), wandb.init(mode="offline", dir=tmp_path, settings=settings) as started:
        warnings.simplefilter("ignore")
        yield started


def ended(run, tmp_path):
    """The rows of the run's history and its alerts; every number of ours has our axis."""
    run.finish()
    rows, alerts, axes = written(tmp_path)
    ours = {name for row in rows for name in row if name.startswith("softscope/")}
    assert axes == {name: "" if name == "softscope/step" else "softscope/step" for name in ours}
    return rows, alerts


def test_rows_and_alerts(run, tmp_path):
    play(history(steps=range(0, 40, 10), max_logit=[6, GREAT, GREAT, GREAT]), WandB(run), first_step=100)
    rows, alerts = ended(run, tmp_path)
    assert [row["softscope/step"] for row in rows] == [100, 110, 120, 130]
    assert [row["_step"] for row in rows] == [100, 110, 120, 130]
    assert [row[f"{SITE}/max_logit_worst"] for row in rows] == [6, GREAT, GREAT, GREAT]
    assert [row["softscope/heads/learning"] for row in rows] == [4, 4, 4, 4]
    assert alerts == [("step 110 SS003 Large or growing logits: 4 places", "WARN")]


def test_the_active_run_is_used_and_may_begin_later_than_the_sink(tmp_path, request):
    sink = WandB()
    run = request.getfixturevalue("run")
    play(history(steps=range(2)), sink)
    assert len(ended(run, tmp_path)[0]) == 2


def test_other_loggers_lose_nothing_and_take_nothing_away(run, tmp_path):
    """A run that has been resumed or logged to more often is ahead; its rows are never gone back to."""

    def logs_too(step):
        run.log({"loss": step})
        run.log({"loss": step + 0.5})

    sink = WandB(run)
    for step in range(200):
        run.log({"before": step})
    for step in range(3):  # nobody else logs: each has its own row
        play(history(steps=[step]), sink)
    for step in range(3, 6):
        play(history(steps=[step]), sink)
        logs_too(step)
    run.log({"explicit": 1}, step=1000)
    play(history(steps=[1000]), sink)
    run.log({"same": 1}, step=1000)
    rows, _ = ended(run, tmp_path)
    assert [row["softscope/step"] for row in rows if "softscope/step" in row] == [0, 1, 2, 3, 4, 5, 1000]
    assert [row["loss"] for row in rows if "loss" in row] == [3, 3.5, 4, 4.5, 5, 5.5]
    assert [row["before"] for row in rows if "before" in row] == list(range(200))
    assert (rows[-1]["explicit"], rows[-1]["same"], rows[-1]["softscope/step"]) == (1, 1, 1000)


def test_without_a_run_there_is_one_warning():
    with one_warning(r"the logger failed \(no run of Weights & Biases is active; call wandb.init\(\) first"):
        play(history(), WandB())
