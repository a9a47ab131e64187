"""Run commands, in this process or as a separate program."""

import dataclasses
import fcntl
import io
import json
import math
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import unicodedata

import pytest

from softscope.cli import main

MAPS = ("softmax", "sparsemax", "entmax:1.5", "entmax:1.2", "entmax:1", "linear", "relu", "sigmoid", "hardmax")
RIVALS = ("linear", "relu", "sigmoid", "hardmax")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MODULE = (sys.executable, "-m", "softscope.cli")


@dataclasses.dataclass
class Runner:
    """Call main() in a clean environment, keeping stdout, stderr and the exit code apart."""

    capsys: pytest.CaptureFixture
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *words, stdin=None):
        data = stdin.encode() if isinstance(stdin, str) else stdin
        stream = Terminal() if data is None else io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        self.monkeypatch.setattr(sys, "stdin", stream)
        code = main([str(word) for word in words])
        out, err = self.capsys.readouterr()
        return code, out, err

    def json(self, *words, stdin=None):
        code, out, err = self(words[0], "--format", "json", *words[1:], stdin=stdin)
        assert (code, err) == (0, "")
        return json.loads(out, parse_constant=_no_constant)

    def text(self, *words, stdin=None):
        code, out, err = self(*words, stdin=stdin)
        assert (code, err) == (0, ""), err
        return out


class Terminal(io.StringIO):
    """Standard input with a person at the keyboard: nothing may be read from it."""

    def isatty(self):
        return True

    def read(self, *_):
        raise AssertionError("waits for a terminal")


def _no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def environment(**changes):
    """This process's environment without the variables that decide language, colour and width."""
    ours = {"LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING"}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"LANG": "C.UTF-8", "TERM": "xterm"} | changes


def program(*words, command=MODULE, **options):
    """The finished process, with UTF-8 text."""
    env = environment(**options.pop("env", {}))
    options = {"stdin": subprocess.DEVNULL} | options if "input" not in options else options
    return subprocess.run(
        [*command, *words], env=env, capture_output=True, encoding="utf-8", timeout=60, check=False, **options
    )


def on_terminal(*words, width=80, typed=b"", cwd=None, **env):
    """Exit code, output to a terminal of that width, and stderr; `typed` is what the user types."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [*MODULE, *words], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment(**env), cwd=cwd
    )
    os.close(theirs)
    os.write(ours, typed)
    sent = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux raises this when the other end is closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    _, errors = process.communicate(timeout=60)
    return process.returncode, sent.decode().replace("\r\n", "\n"), errors.decode()


def script():
    """The installed `softscope` script."""
    found = shutil.which("softscope", path=str(pathlib.Path(sys.executable).parent))
    if found is None:
        pytest.skip("the softscope script is not installed here; `pip install -e .` installs it")
    return found


def columns(line):
    """The width of the line on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def softmax(x, T=1.0):
    """The formula in plain Python."""
    top = max(x)
    e = [math.exp((value - top) / T) for value in x]
    return [value / math.fsum(e) for value in e]
