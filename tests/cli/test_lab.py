"""`softscope lab` on the command line: help, and the messages for wrong usage. The server is tested in tests/lab."""

import subprocess
import sys

import pytest

from cli.commands import Runner
from softscope import _installed
from softscope.cli import lab
from softscope.lab import language, practice, progress, start
from softscope.lab.start import listen


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("LANG", "C.UTF-8")
    return Runner(capsys, monkeypatch)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "1.5", "", "٣"])
def test_a_port_is_a_whole_number(run, port):
    code, out, err = run("lab", "--no-browser", f"--port={port}", "--lang", "en")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "from 0 to 65535" in err


def test_a_taken_port_is_one_sentence(run):
    with listen() as opened:
        opened.listen()
        code, out, err = run("lab", "--no-browser", "--port", opened.getsockname()[1], "--lang", "en")
    assert (code, out) == (2, "")
    assert "leave --port out" in err


@pytest.mark.parametrize("package", lab.PACKAGES)
def test_a_missing_package_is_one_sentence(run, monkeypatch, package):
    monkeypatch.setattr(_installed, "_installed", lambda name: name != package)
    code, out, err = run("lab", "--no-browser", "--lang", "zh")
    assert (code, out) == (2, "")
    assert err == f"softscope: 实验室需要 {package}：pip install 'softscope[lab]'\n"


def _no_server(self, sockets):
    self._ready()
    for opened in sockets:
        opened.close()


@pytest.fixture
def started(run, monkeypatch):
    """Everything a lab with this home prints from start to end."""
    monkeypatch.setattr(start, "application", lambda **_: None)
    monkeypatch.setattr(start._Server, "run", _no_server)
    monkeypatch.setattr(progress, "_current", progress.LessonProgress())
    monkeypatch.setattr(language, "_preferred", "en")

    def started_with(home, lang="en"):
        practice._progress.cache_clear()  # each lab is a new process
        monkeypatch.setenv("SOFTSCOPE_HOME", str(home))
        code, out, err = run("lab", "--no-browser", "--lang", lang)
        assert (code, err) == (0, "")
        return " ".join(out.split())

    return started_with


def test_progress_that_is_kept(started, tmp_path):
    said = started(tmp_path / "home")
    assert "cannot be saved" not in said
    assert said.endswith("Stopped. Your progress is saved.")


@pytest.mark.parametrize(
    ("lang", "first", "last"),
    [
        ("en", "progress cannot be saved in", "Your progress could not be saved in"),
        ("zh", "进度无法保存到", "没能保存到"),
    ],
)
def test_a_home_that_cannot_be_written_is_told_at_both_ends(started, tmp_path, lang, first, last):
    (tmp_path / "file").write_text("")
    said = started(tmp_path / "file", lang)
    assert first in said.partition("http://")[0]
    assert last in said.partition("http://")[2]
    assert said.endswith(("File exists", "Not a directory"))


@pytest.mark.parametrize("name", ["lab", "homework"])
@pytest.mark.parametrize(("lang", "words"), [("en", "it was renamed to"), ("zh", "已把它改名为")])
def test_a_spoilt_record_is_told_once(started, tmp_path, name, lang, words):
    (tmp_path / f"{name}.json").write_text("[" * 100_000)
    assert started(tmp_path, lang).count(words) == 1
    assert (tmp_path / f"{name}.broken.json").exists()
    assert words not in started(tmp_path, lang)


def test_help_has_examples(run):
    text = run.text("lab", "--help", "--lang", "en")
    assert "softscope lab --no-browser" in text
    assert "Ctrl-C" in text


def test_no_arguments_are_taken(run):
    code, _, err = run("lab", "overflow", "--lang", "en")
    assert code == 2
    assert "lab takes no argument" in err


def test_nothing_heavy_is_imported_before_it_starts():
    code = "import sys, softscope.lab.course, softscope.cli.lab; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert not {"marimo", "starlette", "uvicorn", "anywidget", "altair", "torch"} & set(loaded.split())
