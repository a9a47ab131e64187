"""What was written reads back bit for bit; a resumed run continues; a different model starts a new part."""

import dataclasses
import json
import math
import os
import re
import sqlite3
import sys
import threading
import warnings

import numpy as np
import pytest

from doctor.record.runs import SITES, finished, one_warning, same, snapshot
from softscope.doctor.listen.reasons import HEADS, TOLD, Reason
from softscope.doctor.record import Record, RecordError, news, read_record


def write(path, steps, sites=SITES):
    with Record(path) as record:
        record.sites(sites)
        for step in steps:
            record.add(snapshot(step, sites=sites))


def test_all_of_it_comes_back(tmp_path):
    path = tmp_path / "deep" / "er" / "run.db"
    with Record(path) as record:
        record.sites(SITES)
        record.unseen([("pooler", "no softmax seen"), ("encoder.3", Reason(HEADS, ("4", "8")))])
        for step in (0, 10, 20):
            record.add(snapshot(step))
    found = read_record(path)
    assert repr(found.sites) == repr(SITES)  # NaN is not equal to itself, but prints the same
    assert found.unseen == (("pooler", Reason(TOLD, ("no softmax seen",))), ("encoder.3", Reason(HEADS, ("4", "8"))))
    assert all(same(a, snapshot(b)) for a, b in zip(found.snapshots, (0, 10, 20), strict=True))
    assert found.series("blocked").shape == (3, 2, 4)
    assert found.snapshots[0].has_loss


def test_str_paths_odd_names_and_no_snapshots(tmp_path):
    path = str(tmp_path / "a run? 50% #1 中文.db")
    with Record(path) as record:
        record.sites(SITES)
    assert os.listdir(tmp_path) == ["a run? 50% #1 中文.db"]
    assert read_record(path).snapshots == ()
    assert read_record(path).series("blocked").shape == (0, 2, 4)


def test_before_any_site_the_history_is_empty(tmp_path):
    with Record(tmp_path / "run.db"):
        assert read_record(tmp_path / "run.db").sites == ()
        assert news(tmp_path / "run.db").snapshots == ()


@pytest.mark.parametrize("loss", [None, math.nan, math.inf, -0.5, np.float32(1.5)])
def test_every_loss_comes_back(tmp_path, loss):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.add(snapshot(1, loss=loss, names=("sharpness",)))
    (found,) = read_record(tmp_path / "run.db").snapshots
    assert found.loss == loss or math.isnan(found.loss)
    assert (found.loss is None) == (loss is None)


def test_extremes_of_float32_and_layouts(tmp_path):
    odd = np.array([[np.inf, -np.inf, 1e-45, np.nan], [3.4e38, -0.0, 0.1, np.nan]], np.float32)
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.add(
            dataclasses.replace(snapshot(0), readings={"peak": odd, "cosine": np.asfortranarray(odd.astype(">f8"))})
        )
    (found,) = read_record(tmp_path / "run.db").snapshots
    for reading in found.readings.values():
        assert reading.tobytes() == odd.tobytes()


def test_metadata_without_argv_and_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "hunter2hunter2")
    monkeypatch.setattr(sys, "argv", ["train.py", "--password=hunter2hunter2"])
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
    data = (tmp_path / "run.db").read_bytes()
    assert b"hunter2" not in data
    assert os.uname().nodename.encode() not in data
    assert str(tmp_path).encode() not in data
    facts = read_record(tmp_path / "run.db").facts
    assert {"softscope", "python", "numpy", "machine", "sessions", "parts"} <= facts.keys()
    json.dumps(facts)


def test_metadata_that_is_noted(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(77)
    with Record(tmp_path / "run.db") as record:
        record.note({"model": "Linear", "every": None})
        record.note({"parameters": 16})
    facts = read_record(tmp_path / "run.db").facts
    assert (facts["model"], facts["parameters"], facts["every"]) == ("Linear", 16, None)
    assert (facts["torch_seed"], facts["torch"]) == (77, torch.__version__)


def test_recording_leaves_torch_and_random_state_alone(tmp_path):
    out, _ = finished(
        """
        record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(0)); record.close()
        print("torch" in sys.modules)
        """,
        tmp_path / "run.db",
    )
    assert out == "False\n"


def test_a_closed_record_is_one_file_in_no_special_mode(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.add(snapshot(0))
        assert {"run.db", "run.db-wal"} <= set(os.listdir(tmp_path))
        assert (tmp_path / "run.db").read_bytes()[18:20] == b"\2\2"  # SQLite's header: WAL
    assert os.listdir(tmp_path) == ["run.db"]
    assert (tmp_path / "run.db").read_bytes()[18:20] == b"\1\1"
    read_record(tmp_path / "run.db")
    assert os.listdir(tmp_path) == ["run.db"]


def test_how_a_run_ended(tmp_path):
    with Record(tmp_path / "run.db"):
        assert news(tmp_path / "run.db").ended is None
    assert news(tmp_path / "run.db").ended == ""

    def failing():
        with Record(tmp_path / "run.db"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()
    assert news(tmp_path / "run.db").ended == "KeyboardInterrupt"


def test_closing_twice_and_adding_after_it_do_nothing(tmp_path):
    record = Record(tmp_path / "run.db")
    record.close()
    record.close()
    record.add(snapshot(0))
    assert record.last_step is None
    assert read_record(tmp_path / "run.db").snapshots == ()


def test_a_resumed_run_goes_on(tmp_path):
    write(tmp_path / "run.db", (0, 1, 2))
    record = Record(tmp_path / "run.db")
    assert record.last_step == 2
    record.sites(SITES)
    record.add(snapshot(3))
    record.close()
    found = read_record(tmp_path / "run.db")
    assert [s.step for s in found.snapshots] == [0, 1, 2, 3]
    assert (found.facts["sessions"], found.facts["parts"]) == (2, 1)


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ((0, 10, 20, 30), (15, 25), [0, 10, 15, 25]),  # steps after the checkpoint are superseded
        ((0, 10, 20), (20, 30), [0, 10, 20, 30]),
        ((0, 10, 20), (0, 10), [0, 10]),  # started over
    ],
)
def test_steps_that_repeat_count_once_and_the_newer_ones(tmp_path, first, second, wanted):
    write(tmp_path / "run.db", first)
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        for step in second:
            record.add(snapshot(step, loss=100.0 + step))
    found = read_record(tmp_path / "run.db").snapshots
    assert [s.step for s in found] == wanted
    assert [s.loss for s in found if s.step in second] == [100.0 + step for step in second]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 8}, "blocks.0.attention has heads = 8 instead of 4"),
        ({"scale": 1.0}, "blocks.0.attention has scale = 1 instead of 0.125"),
        ({"name": "layers.0"}, "layers.0 in the place of blocks.0.attention"),
        (None, "1 sites instead of 2"),
    ],
)
def test_another_model_begins_a_part_and_says_so(tmp_path, change, words):
    write(tmp_path / "run.db", (0, 1))
    other = SITES[:1] if change is None else (dataclasses.replace(SITES[0], **change), SITES[1])
    begins = "a new part begins; read_record(path, part=-2) gives the one before"
    with one_warning(re.escape(f"holds the run of a model that differs ({words}): {begins}")):
        write(tmp_path / "run.db", (0,), other)
    assert repr(read_record(tmp_path / "run.db").sites) == repr(other)
    assert len(read_record(tmp_path / "run.db").snapshots) == 1
    for part in (0, -2):
        assert repr(read_record(tmp_path / "run.db", part=part).sites) == repr(SITES)
        assert len(read_record(tmp_path / "run.db", part=part).snapshots) == 2
    for part in (2, -3):
        with pytest.raises(RecordError, match=rf"has 2 part\(s\), and part {part} was asked for"):
            read_record(tmp_path / "run.db", part=part)


def test_how_it_runs_may_change_without_a_new_part(tmp_path):
    write(tmp_path / "run.db", (0,))
    later = (dataclasses.replace(SITES[0], dtype="bfloat16", dropout=0.5, kind="huggingface"), SITES[1])
    write(tmp_path / "run.db", (1,), later)
    found = read_record(tmp_path / "run.db")
    assert (found.facts["parts"], len(found.snapshots)) == (1, 2)
    assert found.sites[0].dtype == "bfloat16"


def test_sites_that_are_seen_later_are_nan_before(tmp_path):
    more = (*SITES, dataclasses.replace(SITES[0], name="decoder", heads=6))
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        record.add(snapshot(0))
        record.sites(more)
        record.add(snapshot(1, sites=more))
    found = read_record(tmp_path / "run.db")
    assert found.facts["parts"] == 1
    series = found.series("peak")
    assert series.shape == (2, 3, 6)
    np.testing.assert_array_equal(series[0, :2, :4], snapshot(0).readings["peak"])
    assert np.isnan(series[0, 2]).all()
    assert np.isnan(series[0, :, 4:]).all()
    np.testing.assert_array_equal(series[1], snapshot(1, sites=more).readings["peak"])


def test_news_are_what_came_since(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        for step in range(5):
            record.add(snapshot(step))
        first = news(tmp_path / "run.db")
        assert [s.step for s in first.snapshots] == [4]
        assert news(tmp_path / "run.db", first.mark).snapshots == ()
        record.add(snapshot(5))
        record.add(snapshot(6))
        second = news(tmp_path / "run.db", first.mark)
        assert [s.step for s in second.snapshots] == [5, 6]
        assert same(second.snapshots[0], snapshot(5))


def test_from_several_threads(tmp_path):
    with Record(tmp_path / "run.db") as record:
        record.sites(SITES)
        threads = [threading.Thread(target=record.add, args=(snapshot(step),)) for step in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    count = sqlite3.connect(tmp_path / "run.db").execute("SELECT count(*), count(DISTINCT step) FROM steps")
    assert count.fetchone() == (20, 20)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
def test_a_fork_leaves_the_record_to_its_parent(tmp_path):
    _, err = finished(
        """
        import os
        record = Record(sys.argv[1]); record.sites(SITES); record.add(snapshot(0))
        child = os.fork()
        if child == 0:
            record.add(snapshot(1)); record.close(); sys.exit()
        os.waitpid(child, 0)
        record.add(snapshot(2)); record.close()
        """,
        tmp_path / "run.db",
    )
    assert err == ""
    assert [s.step for s in read_record(tmp_path / "run.db").snapshots] == [0, 2]


def test_an_ordinary_run_warns_of_nothing(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(tmp_path / "run.db", range(3))
        write(tmp_path / "run.db", range(3, 5))
    assert caught == []
