"""Wherever a typed word becomes a number: any text gives an answer or one sentence, never a traceback."""

import os
import re
import subprocess
import sys

import pytest

from softscope._text import LANGS

CHINESE = re.compile(r"[\u3400-\u9fff]")
# Digits of Unicode that `int` refuses, more digits than it takes, and what else is nearly a number.
ODD = [
    "²",
    "⑦",
    "½",
    "一",
    "9" * 5000,
    "0" * 5000 + "x",
    "9" * 19,
    "1_0",
    "0x1",
    "1e3",
    "1.0",
    "+",
    "",
    " ",
    "nan",
    "٣٣٣٣٣٣²",
]
WORDS = {
    "homework start": ("homework", "start", "{}"),
    "homework hint": ("homework", "hint", "{}"),
    "homework check": ("homework", "check", "{}"),
    "homework skip": ("homework", "next", "--skip", "{}"),
    "homework seed": ("homework", "check", "1", "--seed", "{}"),
    "port": ("lab", "--no-browser", "--port", "{}"),
    "seed": ("experiment", "entropy", "--seed", "{}"),
    "text": ("claims", "--text", "{}"),
}


@pytest.mark.parametrize("name", WORDS)
def test_no_numbers(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in ODD:
        for lang in LANGS:
            code, out, err = run(*(word.format(value) for word in WORDS[name]), "--lang", lang)
            assert (code, out, err.count("\n")) == (2, "", 1), (value[:20], err)
            assert err.startswith("softscope: ")
            assert len(err) < 400
            assert bool(CHINESE.search(err.replace("一", ""))) == (lang == "zh")
            assert "option is used wrongly" not in err, "the sentence names the rule"
    assert not list(tmp_path.glob("*.py"))


@pytest.mark.parametrize("value", ["²", "9" * 5000, "1.5", "x", "-" + "9" * 5000])
def test_no_rows(run, value):
    code, out, err = run("explain", "1", "--row", value)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("value", ["7", " 7 ", "７", "007"])
def test_numbers(run, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("homework", "start", value)[0] == 0
    assert len(list(tmp_path.glob("*.py"))) == 1


def test_the_environment(tmp_path):
    """What stands in a variable is a number or is passed over; an import must not fail for it."""
    code = "import softscope as ss; ss.softmax([1.0, 2.0]); print(ss.get_num_threads())"
    for value in ("²", "9" * 5000, "x", "-1", "0", "1"):
        env = os.environ | {
            "SOFTSCOPE_NUM_THREADS": value,
            "COLUMNS": value,
            "LINES": value,
            "SOFTSCOPE_HOME": str(tmp_path),
        }
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) >= 1
    done = subprocess.run(
        [sys.executable, "-m", "softscope.cli", "env"], env=env | {"COLUMNS": "²"}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
