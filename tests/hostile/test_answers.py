"""Homework answers made of nasty statements, and forged replies: none passes, and each ends in a printable sentence."""

import dataclasses
import itertools
import json
import os
import pathlib

import numpy as np

from hostile.budget import attempts
from softscope.lab import homework
from softscope.lab.homework import EXERCISES, LIMITS, Exercise
from softscope.lab.homework.answer_process import Answer, RaisedError, StoppedError
from softscope.lab.homework.sandbox.messages import encode
from softscope.lab.homework.trial import Trial

PROGRAMS = [exercise for exercise in EXERCISES if isinstance(exercise, Exercise)]
SHORT = dataclasses.replace(LIMITS, call_seconds=1.0)

IMPORTS = (
    "import os, sys, gc, json, ctypes, types, builtins, signal, time, threading",
    "import venv.__main__",
    "import this",
    "from math import *",
    "from numpy import *",
    "import __main__",
    "import antigravity",
    "import site, runpy, pdb",
    "import unittest.__main__",
    "import multiprocessing, subprocess, socket, shutil",
    "import nothing.at_all",
    "import encodings.idna, sqlite3, asyncio",
)
STATEMENTS = (
    "os.close(NUMBER)",
    "os.write(NUMBER, b'{}\\n')",
    "os.dup2(NUMBER, NUMBER + 1)",
    "os.fork()",
    "os.kill(os.getppid(), 9)",
    "os.unlink('/x')",
    "os.execv('/bin/sh', ['sh'])",
    "open('/etc/passwd').read()",
    "sys.modules.clear()",
    "sys.path.clear()",
    "gc.disable()",
    "sys.stdout = sys.stderr = None",
    "sys.stdout.close()",
    "sys.setrecursionlimit(5)",
    "sys.setrecursionlimit(10**6)",
    "json.dumps = json.loads = lambda *a, **k: {}",
    "builtins.len = lambda x: 0",
    "builtins.isinstance = lambda *a: True",
    "builtins.Exception = None",
    "del builtins.print",
    "np.array = np.asarray = None",
    "np.ndarray = object",
    "np.seterr(all='raise')",
    "np.exp = np.log = lambda x, **k: x",
    "signal.signal(15, signal.SIG_IGN)",
    "signal.alarm(1)",
    "signal.setitimer(signal.ITIMER_REAL, 0.01)",
    "sys.settrace(lambda *a: 1 / 0)",
    "sys.setprofile(lambda *a: 1 / 0)",
    "raise SystemExit",
    "raise KeyboardInterrupt",
    "raise MemoryError",
    "raise GeneratorExit",
    "raise StopIteration",
    "sys._getframe(1).f_globals.clear()",
    "sys._getframe(1).f_locals.clear()",
    "bytearray(2**33)",
    "[0] * 2**40",
    "exit()",
    "os._exit(0)",
    "os.abort()",
    "ctypes.string_at(NUMBER)",
    "ctypes.memset(id(None), 255, 8)",
    "print('\\x1b[2J' * 99)",
    "print('x' * 10**7)",
    "while True: pass",
    "time.sleep(60)",
    "threading.Thread(target=print).start()",
    "sys.excepthook = sys.displayhook = None",
    "types.FunctionType.__call__ = None",
    "globals().clear()",
    "[setattr(f, '__code__', (lambda *a: {}).__code__) for f in gc.get_objects() if type(f) is types.FunctionType]",
    "sys.meta_path.clear()",
    "os.environ.clear()",
    "os.chdir('/')",
    "os.setuid(0)",
    "warnings = 1 / 0",
    "yield_ = (yield)",
    "return 3",
    "class A(metaclass=NUMBER): pass",
    "(" * 200 + ")" * 200,
    "x = '\\ud800'",
    "assert False, '\\ud800\\x07'",
)
VALUES = (
    "None",
    "0",
    "x",
    "x[0]",
    "[x]",
    "x * np.nan",
    "np.inf",
    "(x, x)",
    "{'value': x}",
    "np.zeros(10**7)",
    "object()",
    "10**400",
    "'\\ud800\\x1b[2J'",
    "b'x'",
    "iter(x)",
    "type('\\x1b', (), {})()",
    "np.ones((2,) * 20)",
    "x.astype('f2')",
    "float",
    "...",
)


def written(rng, names):
    """An answer with all its functions, and a few nasty statements in front of them or within."""

    def some(choices, most):
        return [str(choices[i]) for i in rng.integers(len(choices), size=rng.integers(most + 1))]

    def nasty(indent):
        lines = [line.replace("NUMBER", str(rng.integers(12))) for line in some(STATEMENTS, 2)]
        if not indent:
            lines = [line for line in lines if "yield" not in line and "return" not in line]
        if rng.random() < 0.3:
            lines = [f"try: {line}\n{indent}except BaseException: pass" for line in lines]
        return "".join(f"{indent}{line}\n" for line in lines)

    source = IMPORTS[0] + "\n" + "".join(f"{line}\n" for line in some(IMPORTS, 2)) + "import numpy as np\n"
    source += nasty("") if rng.random() < 0.5 else ""
    for name in names:
        value = some(VALUES, 1) or ["x"]
        source += f"def {name}(x=np.ones(2), *more):\n{nasty('    ')}    return {value[0]}\n"
    return source + (nasty("") if rng.random() < 0.3 else "")


def children():
    return {pid for path in pathlib.Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_no_nasty_answer_passes_or_harms_the_grader(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    others = children()
    for seed, rng in attempts(16):
        exercise = PROGRAMS[rng.integers(len(PROGRAMS))]
        source = written(rng, exercise.names)
        grade = homework.grade(exercise.id, source, seed=seed, lang=("en", "zh")[seed % 2], limits=SHORT)
        told = f"seed {seed}:\n{source}\n{grade}"
        assert not grade.passed, told
        assert grade.messages, told
        assert all(message.isprintable() and len(message) < 1000 for message in grade.messages), told
        assert len(grade.printed) <= 4000, told
        assert list(tmp_path.iterdir()) == [], told
        assert children() <= others, told
    assert os.path.exists("/etc/passwd")


class Forger(Answer):
    """An answer whose replies are drawn, in place of a process; each could have come over the pipe."""

    def __init__(self, exercise, rng):
        super().__init__("")
        self.functions, self.rng = frozenset(exercise.names), rng

    def _ask(self, request, seconds):
        del seconds
        reply = self.reply(
            [len(part["array"]) for part in request["arguments"] if isinstance(part, dict) and "array" in part]
        )
        return json.loads(json.dumps(reply))

    def reply(self, sizes):
        rng = self.rng
        reply = {"value": self.message(sizes, 0)}
        if rng.random() < 0.05:
            reply |= {"failed": self.scalar(), "error": self.scalar(), "text": self.scalar(), "line": self.scalar()}
        if rng.random() < 0.02:
            reply |= {"passed": True, "large": 1}
        return reply

    def twin(self):
        return self

    def kind(self):
        return "" if self.rng.random() < 0.5 else self.scalar()

    def scalar(self):
        odd = (
            None,
            True,
            0,
            -1,
            0.5,
            1e308,
            float("nan"),
            float("inf"),
            -float("inf"),
            2**62,
            2**64,
            10**400,
            "",
            "\x1b[2J",
            "\ud800",
            "x" * 500,
            [],
            {},
            [[]],
            {"float": 1.0},
        )
        return odd[self.rng.integers(len(odd))]

    def message(self, sizes, depth):
        rng = self.rng
        kind = rng.integers(10)
        if kind == 9:
            return {"list": [self.scalar(), self.scalar()], "tuple": True, "kind": self.kind()}
        if kind < 4:
            n = int(sizes[0]) if sizes and rng.random() < 0.9 else int(rng.integers(6))
            message = encode(np.asarray(rng.choice([0.0, 1.0, 0.5, -1.0, np.nan, np.inf, 1e308, 5e-324], n)))
            if rng.random() < 0.3:
                message[str(rng.choice(["array", "shape", "dtype", "locked"]))] = self.scalar()
            if rng.random() < 0.2:
                message["dtype"] = str(
                    rng.choice(["<f2", "<i8", "|b1", "<f16", "O", "V8", "<U9", "<M8[s]", "f8,f8", "99999999f8"])
                )
            return message
        if kind == 4:
            return {"float": self.scalar()}
        if kind == 5 and depth < 10:
            parts = [self.message(sizes, depth + 1) for _ in range(rng.integers(1, 4))]
            return {"list": parts, "tuple": self.scalar(), "kind": self.kind()}
        if kind == 6 and depth < 10:
            return {"dict": [[self.scalar(), self.message(sizes, depth + 1)]]}
        return {"foreign": self.scalar(), "type": self.scalar()} if kind == 7 else self.scalar()


def test_no_forged_reply_passes_or_harms_the_grader():
    """The judge's side alone, which sees any JSON: thousands of replies, at no cost of a process."""
    for seed, rng in attempts(300):
        exercise = PROGRAMS[seed % len(PROGRAMS)]
        told = []
        for check in exercise.checks:  # each for itself, so that the first does not shield the others
            try:
                with np.errstate(all="ignore"):
                    trial = Trial(Forger(exercise, rng), seed, ("en", "zh")[seed % 2])
                    told += [sentence for _, sentence in itertools.islice(check(trial), 3)]
            except (RaisedError, StoppedError) as ended:
                told.append(repr(ended))
            except Exception as error:
                raise AssertionError(f"seed {seed}, {exercise.id}: {error!r}") from error
        assert told, f"seed {seed}: {exercise.id} passed"
        assert all(sentence.isprintable() for sentence in told), f"seed {seed}: {told}"
