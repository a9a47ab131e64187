"""`softscope lab` on the command line: help, and what it says of a wrong use. tests/lab has the server."""

import subprocess
import sys

import pytest

from cli.commands import Runner
from softscope.cli import lab
from softscope.lab.running import listen


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
    monkeypatch.setattr(lab, "_installed", lambda name: name != package)
    code, out, err = run("lab", "--no-browser", "--lang", "zh")
    assert (code, out) == (2, "")
    assert err == f"softscope: 实验室需要 {package}：pip install 'softscope[lab]'\n"


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
