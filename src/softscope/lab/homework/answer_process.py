"""An answer, running in its own process: calls go in and values come out, whatever it does.

These layers protect the learner's machine, from the outside in: a process group that we end as a whole; a time limit
per call; limits on CPU, memory, files and output; an empty environment and no folder; no rights (root becomes nobody);
no new processes; and on Linux (x86-64, arm64) a filter that blocks files, sockets, processes and signals to others. All
of them stand before the answer is compiled and its imports run, except that imports may read files. macOS has no such
filter and no memory limit: there, an answer can read whatever its user can read. A cheater can make the answer compute
anything, but it cannot say "passed": only values leave the process, and only the grader knows which ones are right.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from softscope.lab.homework.limits import LIMITS, Limits
from softscope.lab.homework.sandbox.messages import Foreign, ForeignError, decode, encode, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = pathlib.Path(__file__).parent / "sandbox"
_KEPT_OUTPUT = 4000  # bytes of the answer's output that we show


class UnsupportedError(RuntimeError):
    """This system cannot limit processes."""


class RaisedError(Exception):
    """The answer raised an exception, which we received as text."""

    def __init__(self, error: str, text: str, line: int | None, missing: str | None = None) -> None:
        super().__init__(error, text)
        self.error, self.text = printable(error), printable(text)
        self.line, self.missing = line, None if missing is None else printable(missing)

    def __repr__(self) -> str:
        return f"{self.error}({self.text!r})" if self.text else f"{self.error}()"


class StoppedError(BaseException):
    """The answer's process ended; the reason is a key of `sentences.STOPPED` with values.

    Not an Exception: the battery catches those, taking them for errors of the function under test.
    """

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key, self.values = key, values


class Answer:
    """An answer's functions, called by name; `with Answer(source) as answer` ends its process on exit."""

    def __init__(self, source: str, *, may_import: Sequence[str] = (), limits: Limits = LIMITS) -> None:
        self.source, self.may_import, self.limits = source, tuple(may_import), limits
        self.printed = b""
        self.functions: frozenset[str] = frozenset()
        self.guards: dict[str, bool] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ends: list[int] = []  # our ends of the three pipes
        self._pending, self._number = b"", ""
        self._output_bytes = 0
        self._deadline = float("inf")
        self._twin: Answer | None = None

    def __enter__(self) -> Answer:
        """Start the process and run the answer's top-level code, which defines its functions."""
        if os.name != "posix":
            raise UnsupportedError("answers need a system with limits for processes: Linux or macOS")
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
        if self._twin is not None:
            self._twin.__exit__()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        while self._ends:
            os.close(self._ends.pop())

    def twin(self) -> Answer:
        """Return the same answer in a second process, started when first needed, which ends with the first."""
        if self._twin is None:
            self._twin = Answer(self.source, may_import=self.may_import, limits=self.limits).__enter__()
        return self._twin

    def call(self, function: str, *arguments: Any) -> Any:
        """Call the function on copies of the arguments and return its value.

        Ours never change: a check that compared with them would take what the answer wrote for the truth.
        """
        request = {"function": function, "arguments": [encode(argument) for argument in arguments]}
        reply = self._ask(request, self.limits.call_seconds)
        if "failed" in reply:
            raise _raised(reply)
        if "large" in reply:
            raise StoppedError("large")
        try:
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
        # Packages installed in place need the hooks in `site` to be found; NumPy alone does not.
        flags = ["-I", "-B"] if self.may_import else ["-I", "-B", "-S"]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, str(_PROGRAM), str(theirs_in), str(theirs_out)],
                stdin=subprocess.DEVNULL,
                stdout=theirs_print,
                stderr=theirs_print,
                pass_fds=(theirs_in, theirs_out),
                env={},
                cwd=_PROGRAM,
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
            "folder": str(pathlib.Path(tempfile.gettempdir(), f"softscope-{secrets.token_hex(8)}")),
        }
        reply = self._ask(job, self.limits.start_seconds)
        if "failed" in reply:
            raise StoppedError("syntax", text=printable(str(reply.get("text"))), line=reply.get("line"))
        self.guards = {name: bool(reply.get(name)) for name in ("dropped", "filtered")}
        self._deadline = time.monotonic() + self.limits.total_seconds
        reply = self._reply(b"", self.limits.call_seconds)
        if "failed" in reply:
            raise _raised(reply)
        names = reply.get("loaded")
        if not isinstance(names, list):
            raise StoppedError("garbled")
        self.functions = frozenset(map(str, names))

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request under a number that nobody can guess, and wait for the reply with the same number."""
        self._number = secrets.token_hex(8)
        return self._reply(json.dumps({"number": self._number, **request}).encode() + b"\n", seconds)

    def _reply(self, unsent: bytes, seconds: float) -> dict[str, Any]:
        """Send what is unsent, and wait for the next line."""
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
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoppedError("garbled") from error
        if not isinstance(reply, dict) or reply.get("number") != self._number:  # not the reply to our question
            raise StoppedError("garbled")
        return reply

    def _push(self, unsent: bytes) -> bytes:
        try:
            return unsent[os.write(self._requests, unsent) :] if unsent else unsent
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return b""  # the process is gone; the end of its replies will say how

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
        """The replies have ended: report how the process ended."""
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
