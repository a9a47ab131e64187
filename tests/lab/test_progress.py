"""Progress survives, resumes, and never gets in the way."""

import os
import re
import subprocess
import sys

import pytest

from softscope.lab import index
from softscope.lab.course import LESSONS
from softscope.lab.homework import json_store
from softscope.lab.progress import LessonProgress
from softscope.lab.state_folder import state_folder


def test_it_survives(tmp_path):
    path = tmp_path / "new" / "lab.json"
    first = LessonProgress(path)
    first.open("overflow")
    first.finish("overflow")
    first.open("rivals")
    first.paint("dark")
    again = LessonProgress(path)
    assert again.theme == "dark"
    assert (again.state("overflow"), again.state("rivals"), again.state("patient")) == ("done", "open", "new")
    assert again.last == "rivals"
    again.finish("overflow", done=False)
    assert LessonProgress(path).state("overflow") == "open"
    assert [file.name for file in path.parent.iterdir()] == ["lab.json"]


@pytest.mark.parametrize(
    "spoilt",
    [
        "",
        "{",
        "[]",
        '{"lessons": 3, "last": 4}',
        '{"lessons": {}, "last": 4}',
        '{"lessons": {"overflow": "done"}, "last": null, "theme": []}',
        "\x00",
        "[" * 100_000,
    ],
    ids=range(8),
)
def test_a_spoilt_file_is_a_new_beginning(tmp_path, spoilt):
    path = tmp_path / "lab.json"
    path.write_text(spoilt, "utf-8")
    kept = LessonProgress(path)
    assert kept.state("overflow") == "new"
    assert kept.theme == "system"
    assert kept.spoilt == tmp_path / "lab.broken.json"
    assert kept.spoilt.read_text("utf-8") == spoilt, "it may be somebody's"
    kept.open("overflow")
    assert LessonProgress(path).state("overflow") == "open"
    assert LessonProgress(path).spoilt is None


def test_strange_names_in_a_good_file_are_left_out(tmp_path):
    path = tmp_path / "lab.json"
    path.write_text('{"lessons": {"overflow": "x", "rivals": "done"}, "last": null, "theme": "pink"}', "utf-8")
    kept = LessonProgress(path)
    assert (kept.spoilt, kept.state("overflow"), kept.state("rivals"), kept.theme) == (None, "new", "done", "system")


def test_two_labs_lose_nothing_of_each_other(tmp_path):
    path = tmp_path / "lab.json"
    one, other = LessonProgress(path), LessonProgress(path)
    other.finish("sharpness")
    other.paint("dark")
    one.finish("probabilities")
    assert (one.theme, one.state("sharpness")) == ("system", "done")
    for kept in (one, LessonProgress(path)):
        assert (kept.state("sharpness"), kept.state("probabilities")) == ("done", "done")
    assert LessonProgress(path).theme == "dark"


WRITER = """
import pathlib, sys
from softscope.lab.progress import LessonProgress
kept = LessonProgress(pathlib.Path(sys.argv[1]))
for i in range(40):
    kept.finish(f"{sys.argv[2]}{i}")
assert not kept.trouble, kept.trouble
"""


def test_programs_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "lab.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    kept = LessonProgress(path)
    assert {kept.state(f"{name}{i}") for name in "abc" for i in range(40)} == {"done"}
    assert os.listdir(tmp_path) == ["lab.json"]


def test_a_program_that_was_stopped_while_writing_stops_no_other(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="there are no such locks on Windows")
    monkeypatch.setattr(json_store, "_PATIENCE", 0.05)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    LessonProgress(tmp_path / "lab.json").finish("overflow")
    os.close(handle)
    assert LessonProgress(tmp_path / "lab.json").state("overflow") == "done"


def test_what_could_not_be_written_is_written_with_the_next_change(tmp_path):
    home = tmp_path / "home"
    home.write_text("", "utf-8")
    kept = LessonProgress(home / "lab.json")
    kept.try_to_keep()
    assert kept.trouble
    kept.finish("overflow")
    assert kept.path is not None
    home.unlink()
    LessonProgress(home / "lab.json").finish("sharpness")
    kept.open("rivals")
    assert kept.trouble == ""
    states = [LessonProgress(home / "lab.json").state(name) for name in ("overflow", "sharpness", "rivals")]
    assert states == ["done", "done", "open"]


def test_a_file_that_cannot_be_read_is_not_overwritten(tmp_path):
    path = tmp_path / "lab.json"
    path.mkdir()
    kept = LessonProgress(path)
    kept.open("overflow")
    assert kept.trouble == "Is a directory"
    assert kept.state("overflow") == "open"
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "spoilt" / "lab.broken.json").mkdir()  # so nothing can be moved there
    path = tmp_path / "spoilt" / "lab.json"
    path.write_text("{", "utf-8")
    kept = LessonProgress(path)
    kept.open("overflow")
    assert kept.trouble
    assert path.read_text("utf-8") == "{"


def test_a_place_that_cannot_be_written_to_does_not_stop_a_lesson(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    kept = LessonProgress(tmp_path / "file" / "lab.json")
    kept.open("overflow")
    assert kept.state("overflow") == "open"


def test_it_is_kept_where_the_system_says(monkeypatch, tmp_path):
    monkeypatch.delenv("SOFTSCOPE_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "softscope"
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "mine"))
    assert state_folder() == tmp_path / "mine"


def target(progress):
    lesson, words = index._target(progress)
    return lesson.name, words


def test_where_to_go_on():
    progress = LessonProgress()
    assert target(progress) == ("probabilities", index.START)
    progress.open("sharpness")
    assert target(progress) == ("sharpness", index.RESUME)
    progress.finish("sharpness")
    assert target(progress) == ("temperature", index.RESUME)
    progress.finish("temperature")
    progress.open("sharpness")
    assert target(progress) == ("gradient", index.RESUME)
    progress.finish("mistakes")
    assert target(progress) == ("probabilities", index.RESUME)
    for lesson in LESSONS:
        progress.finish(lesson.name)
    assert target(progress) == ("probabilities", index.FINISHED)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_index_page(lang):
    progress = LessonProgress()
    progress.finish("overflow")
    page = index.page(lang, progress, passed=3)
    numbers = re.findall(r'<span class="number"[^>]*>([^<]*)</span>', page)
    assert numbers == [str(n) for n in range(1, len(LESSONS) + 1)], "a finished lesson keeps its number"
    for lesson in LESSONS:
        assert f'href="/lesson/{lesson.name}/?lang={lang}"' in page
        assert lesson.title.of(lang) in page
    assert page.count('<li class="done">') == 1
    assert index.EXERCISES.of(lang).format(passed=3, all=8) in page
    assert f'href="/?lang={"zh" if lang == "en" else "en"}"' in page
    assert "http://" not in page
    assert "https://" not in page
