"""Progress is never half-written, survives a broken file and an unwritable home, and knows what comes next."""

import json
import os
import pathlib

import pytest

from softscope.lab.homework import IDS
from softscope.lab.homework.progress import ExerciseProgress
from softscope.lab.state_folder import HOMEWORK, state_folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "homework.json"


def test_where_it_is_kept(monkeypatch):
    assert HOMEWORK == "homework.json"
    assert state_folder({"SOFTSCOPE_HOME": "/a", "XDG_STATE_HOME": "/b"}) == pathlib.Path("/a")
    assert state_folder({"XDG_STATE_HOME": "/b"}) == pathlib.Path("/b/softscope")
    monkeypatch.setenv("HOME", "/home/someone")
    assert state_folder({}) == pathlib.Path("/home/someone/.local/state/softscope")
    assert state_folder({"SOFTSCOPE_HOME": "", "XDG_STATE_HOME": ""}) == state_folder({})


def test_it_is_there_again(path):
    kept = ExerciseProgress(path)
    assert (kept.passed, kept.next().id) == (0, IDS[0])
    kept.graded("softmax", False)
    assert ExerciseProgress(path).state("softmax") == "tried"
    kept.graded("softmax", True)
    kept.skip("temperature")
    assert kept.hint("dimension", 3) == 1
    again = ExerciseProgress(path)
    assert [again.state(name) for name in IDS[:4]] == ["passed", "skipped", "new", "new"]
    assert (again.passed, again.next().id, again.hints("dimension")) == (1, IDS[2], 1)
    assert [again.hint("dimension", 3) for _ in range(4)] == [2, 3, 3, 3]


def test_what_is_passed_stays_passed(path):
    kept = ExerciseProgress(path)
    kept.graded("softmax", True)
    kept.graded("softmax", False)
    kept.skip("softmax")
    assert ExerciseProgress(path).state("softmax") == "passed"


def test_skipped_ones_come_back_at_the_end():
    kept = ExerciseProgress()
    kept.skip(IDS[2])
    for name in IDS:
        if name != IDS[2]:
            kept.graded(name, True)
    assert kept.next().id == IDS[2]
    kept.graded(IDS[2], True)
    assert kept.next() is None
    assert kept.passed == len(IDS)


SPOILT = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"3",
    b'{"states": 3, "hints": {}}',
    b'{"states": {"softmax": "passed"}, "hints": {"a": "x"}}',
    b'{"states": {}, "hints": {"a": Infinity}}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("text", [*SPOILT, b"[" * 100_000])
def test_a_spoilt_file_is_put_aside(path, text):
    path.parent.mkdir()
    path.write_bytes(text)
    kept = ExerciseProgress(path)
    assert kept.passed == 0
    assert kept.spoilt.read_bytes() == text
    kept.graded("softmax", True)
    assert ExerciseProgress(path).passed == 1
    assert ExerciseProgress(path).spoilt is None


def test_two_programs_lose_nothing_of_each_other(path):
    one, other = ExerciseProgress(path), ExerciseProgress(path)
    other.graded("sparsemax", True)
    other.hint("softmax", 3)
    one.skip("temperature")
    one.graded("sparsemax", False)
    one.read("softmax", 2)
    again = ExerciseProgress(path)
    assert [again.state(name) for name in ("sparsemax", "temperature")] == ["passed", "skipped"]
    assert again.hints("softmax") == 2


def test_strange_values_in_a_good_file_are_left_out(path):
    path.parent.mkdir()
    path.write_text(json.dumps({"states": {"softmax": "glorious", "sparsemax": "passed"}, "hints": {"softmax": -3}}))
    kept = ExerciseProgress(path)
    assert (kept.spoilt, kept.state("softmax"), kept.state("sparsemax"), kept.hints("softmax")) == (
        None,
        "new",
        "passed",
        0,
    )


def test_a_home_that_cannot_be_written_is_told_and_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    kept = ExerciseProgress(tmp_path / "file" / "homework.json")
    kept.graded("softmax", True)
    assert kept.state("softmax") == "passed"
    assert kept.trouble


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    kept = ExerciseProgress(path)
    kept.graded("softmax", True)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", full)
    kept.graded("sparsemax", True)
    monkeypatch.undo()
    assert kept.trouble == "No space left on device"
    assert (ExerciseProgress(path).state("softmax"), ExerciseProgress(path).state("sparsemax")) == ("passed", "new")
    assert os.listdir(path.parent) == ["homework.json"]
