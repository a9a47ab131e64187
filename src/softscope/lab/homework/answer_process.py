"""An answer, running in a process of its own: calls go in and values come out, whatever it does.

What protects the learner's machine, from the outside in: a process group that is ended as a whole; a time for each
call; limits on processor, memory, files and output; an empty environment and folder; no rights (root becomes nobody);
no new process; and on Linux (x86-64, arm64) a filter that lets no file, socket, process or foreign signal through.
On macOS there is no such filter, and no limit of memory: there an answer can read what its user can read. Whoever
wants to cheat can have the answer compute what it likes; it cannot say "passed", since only values leave the process
and what is right is known out here alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope.lab.homework.limits import LIMITS, Limits
from softscope.lab.homework.sandbox.messages import Foreign, ForeignError, decode, encode, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = pathlib.Path(__file__).parent / "sandbox"
_KEPT_OUTPUT = 4000  # bytes of what the answer printed that are shown


class UnsupportedError(RuntimeError):
    """This system has no limits for processes."""


class RaisedError(Exception):
    """The answer raised an exception, which came over as text."""

    def __init__(self, error: str, text: str, line: int | None, missing: str | None = None) -> None:
        super().__init__(error, text)
        self.error, self.text = printable(error), printable(text)
        self.line, self.missing = line, None if missing is None else printable(missing)

    def __repr__(self) -> str:
        return f"{self.error}({self.text!r})" if self.text else f"{self.error}()"


class StoppedError(BaseException):
    """The answer's process has come to its end, and why: a key of `words.STOPPED` with values.

    No Exception: the battery catches those, as what the function under test has raised.
    """

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key, self.values = key, values


class Answer:
    """The functions of an answer, to be called by name; `with Answer(source) as answer` ends its process."""

    def __init__(self, source: str, *, may_import: Sequence[str] = (), limits: Limits = LIMITS) -> None:
        self.source, self.may_import, self.limits = source, tuple(may_import), limits
        self.printed = b""
        self.functions: frozenset[str] = frozenset()
        self.guards: dict[str, bool] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ends: list[int] = []  # ours of the three pipes
        self._pending = b""
        self._output_bytes = 0
        self._deadline = float("inf")

    def __enter__(self) -> Answer:
        """Start the process and run the answer's own lines, up to its functions."""
        if os.name != "posix":
            raise UnsupportedError("answers need a system with limits for processes: Linux or macOS")
        self._folder = tempfile.TemporaryDirectory(prefix="softscope-")
        self._selector = selectors.DefaultSelector()
        try:
            self._start()
            self._load()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the whole process group, and leave nothing open."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        while self._ends:
            os.close(self._ends.pop())
        self._folder.cleanup()

    def call(self, function: str, *arguments: Any) -> Any:
        """What the function gives for the arguments; arrays that it changes are changed here too."""
        request = {"function": function, "arguments": [encode(argument) for argument in arguments]}
        reply = self._exchange(request, self.limits.call_seconds)
        if "failed" in reply:
            raise _raised(reply)
        try:
            changed = reply.get("changed")
            for given, after in zip(arguments, changed or (), strict=False):
                if isinstance(given, np.ndarray) and given.flags.writeable:
                    given[...] = decode(after)
            return decode(reply["value"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoppedError("garbled") from error

    def _start(self) -> None:
        theirs_in, self._requests = os.pipe()
        self._replies, theirs_out = os.pipe()
        self._output, theirs_print = os.pipe()
        self._ends = [self._requests, self._replies, self._output]
        for end in self._ends:
            os.set_blocking(end, False)
        self._selector.register(self._replies, selectors.EVENT_READ)
        self._selector.register(self._output, selectors.EVENT_READ)
        # Packages that are installed in place are found by hooks of `site`, which NumPy alone does not need.
        flags = ["-I", "-B"] if self.may_import else ["-I", "-B", "-S"]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, str(_PROGRAM), str(theirs_in), str(theirs_out)],
                stdin=subprocess.DEVNULL,
                stdout=theirs_print,
                stderr=theirs_print,
                pass_fds=(theirs_in, theirs_out),
                env={},
                cwd=self._folder.name,
                start_new_session=True,
            )
        finally:
            for end in (theirs_in, theirs_out, theirs_print):
                os.close(end)

    def _load(self) -> None:
        job = {
            "source": self.source,
            "path": [str(pathlib.Path(folder or ".").absolute()) for folder in sys.path],
            "may_import": self.may_import,
            "cpu_seconds": self.limits.cpu_seconds,
            "memory": self.limits.memory,
            "parent": os.getpid(),
        }
        reply = self._exchange(job, self.limits.start_seconds)
        if "failed" in reply:
            raise StoppedError("syntax", text=printable(str(reply.get("text"))), line=reply.get("line"))
        self.guards = {name: bool(reply.get(name)) for name in ("dropped", "filtered")}
        self._deadline = time.monotonic() + self.limits.total_seconds
        reply = self._exchange(None, self.limits.call_seconds)
        if "failed" in reply:
            raise _raised(reply)
        names = reply.get("loaded")
        if not isinstance(names, list):
            raise StoppedError("garbled")
        self.functions = frozenset(map(str, names))

    def _exchange(self, request: object, seconds: float) -> dict[str, Any]:
        """Send a request, if there is one, and wait for the next line of replies."""
        unsent = b"" if request is None else json.dumps(request).encode() + b"\n"
        deadline = min(time.monotonic() + seconds, self._deadline)
        unsent = self._push(unsent)
        if unsent:  # more than the pipe holds
            self._selector.register(self._requests, selectors.EVENT_WRITE)
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0.0:
                raise StoppedError("slow", seconds=f"{seconds:g}")
            for key, _ in self._selector.select(left):
                if key.fd == self._requests:
                    unsent = self._push(unsent)
                    if not unsent:
                        self._selector.unregister(self._requests)
                elif key.fd == self._output:
                    self._hear()
                else:
                    self._pull()
        if unsent:  # a reply before all was asked is none of ours
            raise StoppedError("garbled")
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoppedError("garbled") from error
        if not isinstance(reply, dict):
            raise StoppedError("garbled")
        return reply

    def _push(self, unsent: bytes) -> bytes:
        try:
            return unsent[os.write(self._requests, unsent) :] if unsent else unsent
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return b""  # it is gone; the end of its replies will say how

    def _pull(self) -> None:
        chunk = os.read(self._replies, 2**16)
        if not chunk:
            self._ended()
        self._pending += chunk
        if len(self._pending) > self.limits.reply:
            raise StoppedError("large")

    def _hear(self) -> None:
        chunk = os.read(self._output, 2**16)
        if not chunk:
            self._selector.unregister(self._output)
        self.printed = (self.printed + chunk)[:_KEPT_OUTPUT]
        self._output_bytes += len(chunk)
        if self._output_bytes > self.limits.output:
            raise StoppedError("output", kilobytes=self.limits.output // 1024)

    def _ended(self) -> None:
        """The replies have come to an end: say how the process did."""
        assert self._process is not None
        try:
            code = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            raise StoppedError("closed") from None
        with contextlib.suppress(BlockingIOError, StoppedError, KeyError):
            self._hear()
        if code == -signal.SIGXCPU:
            raise StoppedError("slow", seconds=str(self.limits.cpu_seconds))
        if code < 0:
            with contextlib.suppress(ValueError):
                raise StoppedError("killed", signal=signal.Signals(-code).name)
        raise StoppedError("exit", code=code)


def _raised(reply: dict[str, Any]) -> RaisedError:
    line, missing = reply.get("line"), reply.get("missing")
    return RaisedError(
        str(reply.get("error"))[:60],
        str(reply.get("text"))[:160],
        line if isinstance(line, int) else None,
        str(missing)[:60] if missing else None,
    )


__all__ = ["Answer", "Foreign", "ForeignError", "RaisedError", "StoppedError", "UnsupportedError"]
