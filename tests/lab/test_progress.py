"""Progress survives, resumes, and never stands in the way."""

import pytest

from softscope.lab import index
from softscope.lab.course import LESSONS
from softscope.lab.progress import Progress, folder


def test_it_survives(tmp_path):
    path = tmp_path / "new" / "lab.json"
    first = Progress(path)
    first.open("overflow")
    first.finish("overflow")
    first.open("rivals")
    first.paint("dark")
    again = Progress(path)
    assert again.theme == "dark"
    assert (again.state("overflow"), again.state("rivals"), again.state("patient")) == ("done", "open", "new")
    assert again.last == "rivals"
    again.finish("overflow", done=False)
    assert Progress(path).state("overflow") == "open"
    assert [file.name for file in path.parent.iterdir()] == ["lab.json"]


@pytest.mark.parametrize(
    "spoilt",
    [
        "",
        "{",
        "[]",
        '{"lessons": 3, "last": 4}',
        '{"lessons": {"overflow": "x"}, "last": null}',
        "\x00",
        '{"lessons": {}, "last": null, "theme": "pink"}',
    ],
)
def test_a_spoilt_file_is_a_new_beginning(tmp_path, spoilt):
    path = tmp_path / "lab.json"
    path.write_text(spoilt, "utf-8")
    kept = Progress(path)
    assert kept.state("overflow") == "new"
    assert kept.theme == "system"
    kept.open("overflow")
    assert Progress(path).state("overflow") == "open"


def test_a_place_that_cannot_be_written_to_does_not_stop_a_lesson(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    kept = Progress(tmp_path / "file" / "lab.json")
    kept.open("overflow")
    assert kept.state("overflow") == "open"


def test_it_is_kept_where_the_system_says(monkeypatch, tmp_path):
    monkeypatch.delenv("SOFTSCOPE_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert folder() == tmp_path / "softscope"
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "mine"))
    assert folder() == tmp_path / "mine"


def target(progress):
    lesson, words = index._target(progress)
    return lesson.name, words


def test_where_to_go_on():
    progress = Progress()
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
    progress = Progress()
    progress.finish("overflow")
    page = index.page(lang, progress, passed=3)
    for lesson in LESSONS:
        assert f'href="/lesson/{lesson.name}/?lang={lang}"' in page
        assert lesson.title.of(lang) in page
    assert page.count('<li class="done">') == 1
    assert index.EXERCISES.of(lang).format(passed=3, all=8) in page
    assert f'href="/?lang={"zh" if lang == "en" else "en"}"' in page
    assert "http://" not in page
    assert "https://" not in page
