"""Whatever an answer does, the result is a clear message; the grader survives and nothing is left behind."""

import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from lab.homework.answers import NUMPY, RIGHT
from softscope.lab import homework
from softscope.lab.homework import LIMITS
from softscope.lab.homework.answer_process import Answer, RaisedError, StoppedError
from softscope.lab.homework.sandbox import seccomp

CHINESE = re.compile(r"[\u4e00-\u9fff]")
SHORT = dataclasses.replace(LIMITS, call_seconds=1.5)
FINE = NUMPY + RIGHT["softmax"][0]
FORBIDDEN = "may not use files, the network, processes or signals"
filtered = pytest.mark.skipif(not seccomp.available(), reason="needs the filter: Linux on x86-64 or arm64")

# Name: the answer, the name of the problem found, and words from the message. Each is tried both at the top level of
# the file and inside the function.
HOSTILE = {
    "endless loop": ("while True: pass", "slow", "No result within 1.5 s"),
    "endless loop that ignores signals": (
        "import signal\nfor s in set(range(1, 32)) - {9, 19}: signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        "slow",
        "No result within 1.5 s",
    ),
    "sleeps": ("import time\ntime.sleep(60)", "slow", "No result within 1.5 s"),
    "os._exit": ("import os\nos._exit(0)", "exit", "exited by itself (exit code 0)"),
    "os._exit with 1": ("import os\nos._exit(1)", "exit", "exited by itself (exit code 1)"),
    "endless output": ("while True: print('x' * 1000)", "output", "printed more than 1024 KB"),
    "endless output on stderr": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output", "printed more than"),
    "10 GB": ("import numpy as np\nbig = np.ones(10**10 // 8)", None, "not enough memory"),
    "10 GB of list": ("big = [0] * (10**10 // 8)", None, "not enough memory"),
    "memory bit by bit": (
        "import numpy as np\nbig = []\nwhile True: big.append(np.empty(10**7))",
        None,
        "not enough memory",
    ),
    "fork bomb": ("import os\nwhile True: os.fork()", None, FORBIDDEN),
    "threads": ("import threading\nwhile True: threading.Thread(target=print).start()", None, "can't start new thread"),
    "shell": ("import subprocess\nsubprocess.run(['ls', '/'])", None, FORBIDDEN),
    "os.system": ("import os\nif os.system('ls /') != 0: raise OSError('no shell')", None, "no shell"),
    "reads a file": ("open('/etc/passwd').read()", None, FORBIDDEN),
    "reads its parent": ("import os\nopen(f'/proc/{os.getppid()}/environ').read()", None, FORBIDDEN),
    "lists files": ("import os\nos.listdir('/')", None, FORBIDDEN),
    "writes a file": ("open('left-behind', 'w').write('x')", None, FORBIDDEN),
    "deletes": ("import shutil\nshutil.rmtree('/')", None, FORBIDDEN),
    "kills the parent": ("import os\nos.kill(os.getppid(), 9)", None, FORBIDDEN),
    "kills all": ("import os\nos.kill(-1, 9)", None, FORBIDDEN),
    "kills its group": ("import os\nos.killpg(0, 9)", None, FORBIDDEN),
    "opens a socket": ("import socket\nsocket.socket()", None, FORBIDDEN),
    "connects to a name": ("import socket\nsocket.create_connection(('example.com', 80))", None, FORBIDDEN),
    "connects to a number": ("import socket\nsocket.create_connection(('127.0.0.1', 80))", None, FORBIDDEN),
    "writes into the pipes": (
        "import os\nfor fd in range(3, 1024):\n    try: os.write(fd, b'passed!\\n')\n    except OSError: pass",
        "garbled",
        "other than the grader wrote to its pipe",
    ),
    "closes the pipes": ("import os\nos.closerange(0, 1024)\nwhile True: pass", "closed", "pipe was closed"),
    "recursion": ("def deep(): return deep()\ndeep()", None, "RecursionError"),
    "recursion without a limit": (
        "import sys\nsys.setrecursionlimit(10**9)\n"
        "class A:\n    def __getattribute__(self, n): return getattr(self, n)\nA().x",
        "killed",
        "crashed (SIGSEGV)",
    ),
    "crash": ("import ctypes\nctypes.string_at(0)", "killed", "crashed (SIGSEGV)"),
    "abort": ("import os\nos.abort()", "killed", "crashed (SIG"),
    "sys.exit": ("import sys\nsys.exit(0)", None, "raised SystemExit"),
    "interrupt": ("raise KeyboardInterrupt", None, "raised KeyboardInterrupt"),
    "an error that cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise ValueError\n    __repr__ = __str__\nraise E",
        None,
        "raised E()",
    ),
    "reads the keyboard": ("input()", None, "raised EOFError"),
    "scipy": ("from scipy.special import softmax", None, "scipy is not available in this exercise"),
    "torch": ("import torch", None, "torch is not available in this exercise"),
    "softscope": ("import softscope as ss", None, "softscope is not available in this exercise"),
    "softscope by its parts": ("from softscope._backends.reference import rows", None, "softscope is not available"),
    "softscope by name": ("__import__('softscope')", None, "softscope is not available"),
    "the grader": ("import softscope.lab.homework.catalogue", None, "softscope is not available"),
}
NEEDS_FILTER = {name for name, (_, _, says) in HOSTILE.items() if says in (FORBIDDEN, "no shell", "crashed (SIG")}


@pytest.mark.parametrize("where", ["file", "function"])
@pytest.mark.parametrize("name", HOSTILE)
def test_it_ends_in_a_clear_message(name, where):
    if name in NEEDS_FILTER and not seccomp.available():
        pytest.skip("needs the filter: Linux on x86-64 or arm64")
    code, key, says = HOSTILE[name]
    if where == "file":
        source = f"{FINE}\n{code}\n"
    else:
        source = f"{NUMPY}\ndef softmax(x):\n{textwrap.indent(code, '    ')}\n    return x\n"
    started = time.monotonic()
    grade = homework.grade("softmax", source, seed=0, limits=SHORT)
    assert time.monotonic() - started < 30.0
    assert not grade.passed
    told = " ".join(grade.messages)
    if key is not None:
        assert grade.broken[-1] == key, grade
    assert says in told or _short(says) in told, told
    assert len(told) < 1500
    assert len(grade.printed) <= 4000


@pytest.mark.parametrize("name", ["os._exit", "10 GB", "reads a file", "recursion", "scipy", "crash"])
def test_in_chinese_too(name):
    grade = homework.grade("softmax", f"{FINE}\n{HOSTILE[name][0]}\n", seed=0, lang="zh", limits=SHORT)
    assert len(grade.messages) == 1
    assert CHINESE.search(grade.messages[0])


def _short(says):
    """How the battery reports it: by the exception itself."""
    return {"not enough memory": "MemoryError", FORBIDDEN: "PermissionError"}.get(says, says)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_sentence_ends_where_there_is_no_more_to_say(lang):
    (told,) = homework.grade("softmax", "big = bytearray(10**10)", lang=lang).messages
    assert told.endswith({"en": "not enough memory (line 1).", "zh": "内存不够（第 1 行）。"}[lang])


def test_the_grader_works_as_before_after_all_that():
    for name in ("fork bomb", "os._exit", "writes into the pipes"):
        homework.grade("softmax", HOSTILE[name][0], limits=SHORT)
        assert homework.grade("softmax", FINE, seed=0).passed


def children():
    """Processes started by this one that still exist, including zombies."""
    listed = pathlib.Path("/proc/self/task").glob("*/children")
    return {pid for path in listed for pid in path.read_text().split()}


def test_no_process_file_or_open_pipe_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
    others = children()  # such as a browser and a lab from earlier tests
    for name in ("endless loop", "os._exit", "endless output", "closes the pipes", "10 GB", "reads a file"):
        homework.grade("softmax", HOSTILE[name][0], limits=SHORT)
    homework.grade("softmax", FINE)
    assert list(tmp_path.iterdir()) == []
    if sys.platform == "linux":
        assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # the listing itself
    assert children() <= others


MISTAKES = {
    "syntax": ("def softmax(x)\n    return x", "syntax", "not valid Python: line 1, expected ':'"),
    "indentation": ("def softmax(x):\nreturn x", "syntax", "line 2"),
    "null byte": ("def softmax(x):\n    return '\0'", "syntax", "not valid Python"),
    "deeply nested": ("(" * 3000 + ")" * 3000, "syntax", "too many nested parentheses"),
    "other name": ("def soft_max(x):\n    return x", "missing", "There is no function softmax"),
    "a number under the name": ("softmax = 3", "missing", "There is no function softmax"),
    "nothing": ("", "missing", "There is no function softmax"),
    "error while reading": ("\n\n1 / 0", "raised", "it raised ZeroDivisionError('division by zero') (line 3)"),
    "no argument": ("def softmax():\n    return 1", "returns", "takes 0 positional arguments but 1 was given"),
    "None": ("def softmax(x):\n    pass", "returns", "f returned None instead of an array"),
    "text": ("def softmax(x):\n    return 'weights'", "returns", "f returned 'weights'"),
    "a module": ("import numpy\ndef softmax(x):\n    return numpy", "returns", "f returned <module 'numpy'"),
    "wrong shape": ("def softmax(x):\n    return x[:-1]", "returns", "returned shape (1,) for an input of shape (2,)"),
    "complex": ("def softmax(x):\n    return x * 1j", "returns", "instead of an array of real numbers"),
    "too long": ("#" * 200_000, "long", "longer than 100000 characters"),
    "a huge result": (NUMPY + "def softmax(x):\n    return np.ones(10**6)", "large", "The result is too large"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_plain_mistakes(name):
    source, key, says = MISTAKES[name]
    grade = homework.grade("softmax", source, seed=0)
    assert grade.broken[0] == key, grade.messages
    assert says.lower() in grade.messages[0].lower()
    assert CHINESE.search(homework.grade("softmax", source, seed=0, lang="zh").messages[0])


def test_what_it_printed_is_kept():
    grade = homework.grade("softmax", FINE + "print('hello', 1)\n")
    assert grade.passed
    assert grade.printed == "hello 1\n"


def test_main_block_is_not_run():
    assert homework.grade("softmax", FINE + "if __name__ == '__main__':\n    raise SystemExit\n").passed


@filtered
def test_an_ordinary_user_is_as_safe():
    """Grader and answer run as the same user here, so only the filter stands between them."""
    become = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("only setpriv (of util-linux) makes root an ordinary user here; install it to run this")
        # Python may be installed where only root can read, so that one capability is kept.
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+dac_read_search"]
        become += ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    names = ("kills the parent", "kills all", "fork bomb", "reads a file", "opens a socket", "shell")
    code = (
        "import os\nfrom softscope.lab import homework\nassert os.getuid() != 0\n"
        f"for source in {[HOSTILE[name][0] for name in names]!r}:\n"
        "    print(homework.grade('softmax', source).messages[0])\n"
        f"print(homework.grade('softmax', {FINE!r}).passed)\n"
    )
    done = subprocess.run(
        [*become, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(FORBIDDEN) == len(names), done.stdout
    assert done.stdout.splitlines()[-1] == "True"


def test_root_becomes_nobody_and_the_filter_stands():
    with Answer("import os\ndef who():\n    return os.getuid(), os.geteuid(), os.getgid(), dict(os.environ)") as answer:
        uid, effective, gid, environment = answer.call("who")
        if os.geteuid() == 0:
            assert uid == effective == gid == pwd.getpwnam("nobody").pw_uid
            assert answer.guards["dropped"]
        assert answer.guards["filtered"] == seccomp.available()
        assert set(environment) <= {f"{name}_NUM_THREADS" for name in ("OPENBLAS", "OMP", "MKL", "SOFTSCOPE")} | {
            "LC_CTYPE"
        }


def test_without_the_filter_root_still_starts_no_process(monkeypatch, tmp_path):
    """The second line of defence alone: limits and no privileges, as on a machine without the filter."""
    folder = tmp_path / "sandbox"
    folder.mkdir()
    ours = pathlib.Path(seccomp.__file__).parent
    for path in ours.glob("*.py"):
        text = path.read_text("utf-8")
        (folder / path.name).write_text(
            text.replace("def available() -> bool:", "def available() -> bool:\n    return False")
        )
    monkeypatch.setattr("softscope.lab.homework.answer_process._PROGRAM", folder)
    tmp_path.chmod(0o755)
    with Answer("import os\ndef fork():\n    return os.fork()\ndef kill():\n    os.kill(os.getppid(), 9)") as answer:
        assert answer.guards["filtered"] is False
        with pytest.raises(RaisedError, match="BlockingIOError"):
            answer.call("fork")
        if os.geteuid() == 0:
            with pytest.raises(RaisedError, match="PermissionError"):
                answer.call("kill")


def test_the_child_dies_with_the_grader():
    code = (
        "import os\nfrom softscope.lab.homework.answer_process import Answer\n"
        "with Answer('import time\\ndef f(): time.sleep(60)') as a:\n"
        "    print(a._process.pid, flush=True)\n    os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    pid = int(done.stdout)
    for _ in range(100):
        if not _runs(pid):
            return
        time.sleep(0.05)
    raise AssertionError("still there")


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = pathlib.Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


FORGED = """
import os, sys
number = sys._getframe(1).f_locals["job"]["number"]
for fd in range(3, 1024):
    try: os.write(fd, b'{"number": "%s", "loaded": ["softmax"], "passed": true}\\n' % NUMBER)
    except OSError: pass
"""


@pytest.mark.parametrize("number", ["b'none'", "number.encode()"])
def test_replies_are_only_values(number):
    """Replies from the child are read as data: no pickle, no names, and a forged reply counts for nothing.

    The second one knows its request's number and so is believed: there is a function, says the answer. But the grader
    asks that function, and the next line is no reply to its question.
    """
    source = FORGED.replace("NUMBER", number)
    assert "NUMBER" not in source
    grade = homework.grade("softmax", source)
    assert not grade.passed
    assert grade.broken == ("garbled",), "the forged reply did not reach the grader, so nothing was tested"


def test_processor_time_is_limited_too():
    limits = dataclasses.replace(LIMITS, cpu_seconds=1, call_seconds=20.0)
    grade = homework.grade("softmax", "while True: pass", limits=limits)
    assert grade.broken == ("slow",)
    assert "1 s" in grade.messages[0]


def test_total_time_is_limited_too():
    limits = dataclasses.replace(LIMITS, total_seconds=1.0)
    source = (
        NUMPY + "import time\ndef softmax(x):\n    time.sleep(0.2)\n    e = np.exp(x - x.max())\n    return e / e.sum()"
    )
    assert homework.grade("softmax", source, limits=limits).broken[-1] == "slow"


def test_large_arguments_do_not_block_on_a_child_that_does_not_listen():
    with (
        Answer("import os\ndef f(x): return 1\nos.closerange(0, 2)\n", limits=SHORT) as answer,
        pytest.raises((StoppedError, RaisedError)) as caught,
    ):
        answer.call("g", np.arange(100_000.0))
    assert "AttributeError" in repr(caught.value)
    with (
        Answer("import time\ndef f(x): time.sleep(60)", limits=SHORT) as answer,
        pytest.raises(StoppedError, match="slow"),
    ):
        answer.call("f", np.arange(100_000.0))


def test_a_regrade_is_quick():
    """We assert no time, only that nothing but NumPy was imported: that is what makes it quick."""
    code = NUMPY + "import sys\ndef loaded():\n    return sorted(m for m in sys.modules if '.' not in m)"
    with Answer(code) as answer:
        loaded = set(answer.call("loaded"))
    assert "numpy" in loaded
    assert not loaded & {"softscope", "torch", "scipy", "site", "pytest", "unittest", "asyncio"}
