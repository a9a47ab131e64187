"""The answer is inside the sandbox from its first line: it is compiled there, and its imports run there too."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from lab.homework.answers import NUMPY, RIGHT
from softscope.lab import homework
from softscope.lab.homework import LIMITS
from softscope.lab.homework.answer_process import Answer
from softscope.lab.homework.sandbox import seccomp

filtered = pytest.mark.skipif(not seccomp.available(), reason="needs the filter: Linux on x86-64 or arm64")

# What a module may try while it is imported; each must fail. The module notes what did not.
SPY = """
import os
uid, done, tried = os.getuid(), [], []
def attempt(name, action):
    tried.append(name)
    try:
        action()
    except OSError:
        return
    done.append(name)
def spawn():
    if os.fork() == 0:
        os._exit(0)
def connect():
    import socket
    socket.socket()
attempt("write", lambda: open({target!r}, "w"))
attempt("append", lambda: open({target!r}, "a"))
attempt("update", lambda: open({target!r}, "r+"))
attempt("create", lambda: os.open({target!r} + "2", os.O_CREAT | os.O_RDONLY))
attempt("truncate", lambda: os.truncate({target!r}, 0))
attempt("remove", lambda: os.remove({target!r}))
attempt("mkdir", lambda: os.mkdir("here"))
attempt("rename", lambda: os.rename({target!r}, {target!r} + "3"))
attempt("chmod", lambda: os.chmod({target!r}, 0o777))
attempt("fork", spawn)
attempt("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {{}}))
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
attempt("kill", lambda: os.kill(os.getppid(), 0))
attempt("socket", connect)
attempt("root", lambda: os.setuid(0) if uid else None)
"""


@filtered
def test_an_import_can_only_read(tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.write_text("kept")
    target.chmod(0o666)
    tmp_path.chmod(0o777)
    (tmp_path / "spy.py").write_text(SPY.format(target=str(target)))
    monkeypatch.syspath_prepend(str(tmp_path))
    with Answer("import spy\ndef seen():\n    return spy.uid, spy.done, len(spy.tried)", may_import=["spy"]) as answer:
        uid, done, tried = answer.call("seen")
    assert done == []
    assert tried == SPY.count("\nattempt(")
    assert uid != 0
    assert target.read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".pyc") == ["spy.py", "target"]


PROGRAMS = (
    "venv.__main__",
    "ensurepip.__main__",
    "asyncio.__main__",
    "unittest.__main__",
    "json.tool",
    "sqlite3.__main__",
)


@pytest.mark.parametrize("name", [*PROGRAMS, "this", "antigravity", "__main__", "idlelib.idle", "lib2to3"])
def test_importing_a_program_does_not_start_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    source = f"import {name}\n{NUMPY}{RIGHT['softmax'][0]}"
    grade = homework.grade("softmax", source, seed=0)
    assert list(tmp_path.iterdir()) == []
    assert grade.printed == ""
    if not grade.passed:
        assert "is not available in this exercise (line 1)" in grade.messages[0], grade


def test_what_answers_need_can_still_be_imported():
    names = (
        "math, random, statistics, itertools, decimal, fractions, collections.abc, dataclasses, typing, functools, json"
    )
    numpy = "numpy.linalg, numpy.random, numpy.fft, numpy.polynomial"
    source = f"import {names}, {numpy}, heapq, string, re, time, copy, enum\n{NUMPY}{RIGHT['softmax'][0]}"
    assert homework.grade("softmax", source, seed=0).messages == ()


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root can hide a folder from nobody; run as root"
)
@filtered
def test_a_python_that_only_root_may_read_still_imports(tmp_path, monkeypatch):
    """Rights are dropped before the imports, but for reading; once the answer runs, that right is gone as well."""
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "private.py").write_text("number = 7")
    monkeypatch.syspath_prepend(str(hidden))
    status = "import private, ctypes\ndef number():\n    return private.number\ndef rights():\n" + textwrap.indent(
        "head = (ctypes.c_uint32 * 2)(0x20080522, 0)\ndata = (ctypes.c_uint32 * 6)()\n"
        "ctypes.CDLL(None).capget(head, data)\nreturn list(data)",
        "    ",
    )
    with Answer(status, may_import=["private"]) as answer:
        assert answer.call("number") == 7
        assert not any(answer.call("rights"))


FORGED = {
    "the messenger by name": """
import __main__
__main__._answered = lambda *a: {"value": True, "passed": True, "broken": [], "messages": []}
""",
    "the messenger by its frames": """
import sys
frame = sys._getframe()
while frame is not None:
    for name, thing in list(frame.f_globals.items()):
        if callable(thing) and "answer" in name.lower():
            frame.f_globals[name] = lambda *a, **k: {"value": None, "passed": True, "changed": None}
    frame = frame.f_back
""",
    "the messenger by its objects": """
import gc, types
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType) and thing.__module__ == "__main__":
        thing.__code__ = (lambda *a, **k: {"passed": True, "value": 1, "changed": None}).__code__
""",
    "json": """
import json
real = json.dumps
json.dumps = lambda reply, *a, **k: real({**reply, "passed": True, "broken": [], "problems": []})
""",
    "its encoder": """
import json.encoder
json.encoder.JSONEncoder.encode = lambda self, reply: '{"passed": true, "value": {"float": 1.0}, "changed": null}'
""",
    "numpy": """
np.array_equal = np.allclose = np.all = np.isfinite = lambda *a, **k: np.True_
np.abs = np.max = lambda *a, **k: np.float64(0)
""",
    "memory": """
import ctypes, sys
ctypes.pythonapi.PyDict_SetItemString(ctypes.py_object(sys.modules), b"messages", ctypes.py_object(np))
""",
    "answers in advance": """
import dataclasses
import os
for fd in range(3, 1024):
    try:
        os.write(fd, b'{"loaded": ["softmax"]}\\n' + b'{"value": {"array": [0.5, 0.5], "shape": [2], "dtype": "<f8", '
                 b'"locked": false}, "changed": null}\\n' * 200)
    except OSError:
        pass
""",
    "the exit": "import atexit, os\natexit.register(print, 'passed')\n",
}


@pytest.mark.parametrize("name", FORGED)
def test_an_answer_cannot_say_that_it_passed(name):
    """Only values leave its process, and the grader compares them: whatever the answer makes of its own process."""
    wrong = NUMPY + FORGED[name] + "\ndef softmax(x):\n    return np.full(len(x), 1 / len(x))\n"
    grade = homework.grade("softmax", wrong, seed=0, limits=dataclasses.replace(LIMITS, call_seconds=1.5))
    assert not grade.passed
    assert grade.messages


def test_a_reply_written_before_the_question_is_not_taken_for_its_answer():
    """Otherwise one could answer fixed questions without a function."""
    source = """
import dataclasses
import os
def f(x):
    for fd in range(3, 1024):
        try: os.write(fd, b'{"value": 1, "changed": null}\\n{"value": 2, "changed": null}\\n')
        except OSError: pass
    return 3
"""
    with Answer(source) as answer, pytest.raises(BaseException, match="garbled"):
        answer.call("f", 1)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_grader_that_is_ended_leaves_no_folder(end, tmp_path):
    source = "import time\nprint(1)\ntime.sleep(60)"
    code = (
        "from softscope.lab.homework.answer_process import Answer\nprint('starting', flush=True)\n"
        f"Answer({source!r}).__enter__()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as grader:
        assert grader.stdout.readline() == b"starting\n"
        child = _child(grader.pid)
        grader.send_signal(end)
        grader.wait(60)
    for _ in range(200):
        if not pathlib.Path(f"/proc/{child}").exists():
            break
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def _child(pid):
    """The answer's process, once it sleeps inside the answer (it has dropped its rights and serves no call)."""
    if sys.platform != "linux":
        time.sleep(3)
        return 0
    for _ in range(1200):
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            status = pathlib.Path(f"/proc/{child}/status").read_text()
            if "Seccomp_filters:\t2" in status or ("Seccomp_filters:\t1" in status and "State:\tS" in status):
                time.sleep(0.2)
                return int(child)
        time.sleep(0.05)
    raise AssertionError("no child")
