"""Mistakes the user can fix: one line on stderr, nothing on stdout, exit code 2, never a traceback."""

import re
import sys

import numpy as np
import pytest

from softscope._text import LANGS
from softscope.cli import main
from softscope.cli.commands import COMMANDS
from softscope.cli.explain import source

CHINESE = re.compile(r"[\u4e00-\u9fff]")

MISTAKES = {
    "word": (["explain", "1", "two"], "two, at position 2, is not a number"),
    "control": (["explain", "1", "a\x1bb\x07"], "a\\x1bb\\x07, at position 2"),
    "decimal": (["explain", "1.2.3"], "1.2.3, at position 1"),
    "nan": (["explain", "1", "nan"], "must be finite, but got nan at position 2;"),
    "inf": (["explain", "inf", "1"], "must be finite, but got inf at position 1;"),
    "minus inf": (["explain", "1", "-inf"], "must be finite, but got -inf at position 2;"),
    "too large": (["explain", "1", "1e999"], "must be finite, but got inf at position 2;"),
    "nothing": (["explain"], "got no numbers"),
    "empty": (["explain", "[]"], "the input holds no numbers"),
    "map": (["explain", "1", "--map", "softplus"], "there is no map softplus; there are softmax, sparsemax"),
    "map parameter": (["explain", "1", "--map", "softmax:2"], "there is no map softmax:2"),
    "alpha low": (["explain", "1", "--map", "entmax:0.5"], "at least 1 (1 is softmax, 2 sparsemax), but got 0.5\n"),
    "alpha high": (["explain", "1", "--map", "entmax:inf"], "but got inf\n"),
    "alpha nan": (["explain", "1", "--map", "entmax:nan"], "but got nan\n"),
    "alpha word": (["explain", "1", "--map", "entmax:x"], "but got x\n"),
    "alpha none": (["explain", "1", "--map", "entmax:"], "alpha of entmax"),
    "T zero": (["explain", "1", "--temperature", "0"], "--temperature must be a finite number above 0, but got 0\n"),
    "T negative": (["explain", "1", "--temperature", "-1"], "but got -1\n"),
    "T negative power": (["explain", "1", "--temperature", "-1e-3"], "but got -1e-3\n"),
    "T equals": (["explain", "1", "--temperature=-2"], "but got -2\n"),
    "T nan": (["explain", "1", "-T", "nan"], "but got nan\n"),
    "T inf": (["explain", "1", "-T", "inf"], "but got inf\n"),
    "T word": (["explain", "1", "-T", "warm"], "but got warm\n"),
    "T without value": (["explain", "1", "--temperature"], "--temperature/-T needs a value"),
    "option": (["explain", "1", "--temprature", "2"], "explain has no option --temprature"),
    "no abbreviation": (["explain", "1", "--temp", "2"], "explain has no option --temp"),
    "flag with value": (["explain", "--help=1"], "an option is used wrongly"),
    "format": (["explain", "1", "--format", "xml"], "--format must be text or json, but got xml\n"),
    "row word": (["explain", "x.npy", "--row", "one"], "--row must be a whole number, but got one\n"),
    "row of arguments": (["explain", "1", "2", "--row", "0"], "leave it out"),
    "row of a line": (["explain", "line.npy", "--row", "0"], "leave it out"),
    "row outside": (["explain", "x.npy", "--row", "3"], "x.npy has rows 0 … 2, but got --row 3\n"),
    "row far below": (["explain", "x.npy", "--row", "-4"], "but got --row -4\n"),
    "two files": (["explain", "x.npy", "line.npy"], "must come from one source"),
    "file and numbers": (["explain", "x.npy", "1"], "must come from one source"),
    "file and option": (["explain", "1", "--file", "x.npy"], "must come from one source"),
    "stdin and numbers": (["explain", "-", "1"], "must come from one source"),
    "missing": (["explain", "absent.npy"], "cannot read absent.npy: No such file"),
    "directory": (["explain", "--file", "."], "cannot read .: Is a directory"),
    "null in name": (["explain", "--file", "a\0b"], "a\\x00b is not a .npy file"),
    "text file": (["explain", "--file", "text.txt"], "text.txt is not a .npy file"),
    "empty file": (["explain", "zero.npy"], "zero.npy is not a .npy file"),
    "cut file": (["explain", "cut.npy"], "cut.npy is not a .npy file"),
    "objects": (["explain", "objects.npy"], "objects.npy is not a .npy file of plain numbers"),
    "archive": (["explain", "--file", "archive.npz"], "archive.npz is not a .npy file"),
    "complex": (["explain", "complex.npy"], "must hold real numbers, but its dtype is complex128"),
    "booleans": (["explain", "bool.npy"], "but its dtype is bool"),
    "strings": (["explain", "strings.npy"], "but its dtype is <U1"),
    "no rows": (["explain", "norows.npy"], "the input holds no numbers"),
    "nan in file": (["explain", "nan.npy"], "but got nan at position 2;"),
    "command": (
        ["explian", "1"],
        f"there is no command explian; choose from {', '.join(COMMANDS)}",
    ),
    "no command but numbers": (["1", "2"], "there is no command 1"),
    "option before": (["--frobnicate", "explain"], "softscope has no option --frobnicate"),
    "number before": (["-3"], "softscope takes no argument, but got -3;"),
    "argument of tour": (["tour", "1"], "tour takes no argument, but got 1;"),
    "claim": (["claims", "S9-01"], "there is no claim S9-01; claims run from S0-01 to S4-24"),
    "claim and more": (["claims", "S1-03", "everything"], "there is no claim everything"),
    "text": (["claims", "--text", "005"], "--text must be one of 000, 001, 002, 003, 004, but got 005\n"),
    "text word": (["claims", "--text", "one"], "but got one\n"),
    "verdict": (["claims", "--verdict", "true"], "--verdict must be one of holds, only-if, fails, cited, opinion, but"),
    "format of claims": (["claims", "--format", "pdf"], "--format must be text, json, markdown or html, but got pdf\n"),
    "option of claims": (["claims", "--slow"], "claims has no option --slow"),
    "argument of env": (["env", "x"], "env takes no argument, but got x;"),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((3, 4)))
    np.save("line.npy", np.ones(4))
    np.save("complex.npy", np.array([1j]))
    np.save("bool.npy", np.array([True]))
    np.save("strings.npy", np.array(["a"]))
    np.save("norows.npy", np.zeros((0, 4)))
    np.save("nan.npy", np.array([1.0, np.nan]))
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("archive.npz", x=np.ones(3))
    (tmp_path / "text.txt").write_text("1 2 3")
    (tmp_path / "zero.npy").write_bytes(b"")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "line.npy").read_bytes()[:-8])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", MISTAKES)
def test_one_line_and_exit_code_2(run, name, lang):
    words, wanted = MISTAKES[name]
    code, out, err = run("--lang", lang, *words)
    assert (code, out) == (2, "")
    assert err.startswith("softscope: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert "Traceback" not in err
    if lang == "en":
        assert wanted in err
        assert not CHINESE.search(err)
    else:
        assert CHINESE.search(err)


def test_long_input_stays_on_a_short_line(run):
    code, _, err = run("explain", "x" * 100_000)
    assert code == 2
    assert len(err) < 200


@pytest.mark.parametrize("value", ["fr", "", "EN"])
def test_unknown_language(run, value):
    assert run("explain", 1, "--lang", value) == (2, "", f"softscope: --lang must be zh or en, but got {value}\n")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ("", "got no numbers"),
        (" \n", "got no numbers"),
        ("1 zwei", "zwei, at position 2"),
        (b"\xff\xfe1", "not UTF-8"),
        (b"\x93NUMPY\x01\x00", "pass it with --file"),
    ],
)
def test_stdin(run, data, wanted):
    code, out, err = run("explain", stdin=data)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert wanted in err


def test_endless_stdin(run, monkeypatch):
    monkeypatch.setattr(source, "_MOST_BYTES", 2**20)
    code, _, err = run("explain", stdin="1 " * 2**20)
    assert code == 2
    assert "more than 1 MiB" in err


@pytest.mark.usefixtures("run")
def test_no_stdin_at_all(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for words in ([], ["-"]):
        assert main(["explain", *words]) == 2
        assert "got no numbers" in capsys.readouterr().err


def test_broken_headers_never_crash(run, tmp_path):
    """Any byte of a .npy file may be wrong: the file is read, or refused in one line."""
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6.0).reshape(2, 3))
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    codes = []
    for trial in range(400):
        bad = bytearray(good)
        for place in rng.integers(0, 80 if trial % 2 else len(bad), 1 + trial % 3):
            bad[place] = rng.integers(256)
        path.write_bytes(bytes(bad))
        code, out, err = run("explain", path)
        codes.append(code)
        assert (code == 0 and out and not err) or (code == 2 and not out and err.count("\n") == 1), err
    assert set(codes) == {0, 2}
