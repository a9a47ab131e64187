"""Work done in a process of its own, with little time and memory: it may hang, abort or outgrow the machine."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from softscope._users_code import told
from softscope.cli.checkup import sizes
from softscope.cli.problems import REASON, UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60  # of processor time
MEMORY = 4 * 2**30  # bytes; the largest vocabularies take one quarter


def apart(work: Callable[[], Any], path: str) -> Any:
    """Return what the work returns, as JSON would; a UsageError comes through, anything else becomes one.

    A fork and not a new program: transformers takes seconds to import. Where forking is not safe, the work is done
    here, without limits.
    """
    if sys.platform != "linux":
        try:
            return work()
        except (UsageError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise UsageError("checkup.folder.load", path=path, reason=reason(error)) from None
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on forking with threads: the child needs none of them
        child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(work, path, writer)
    os.close(writer)
    answer, status = b"", 0
    try:
        while part := os.read(reader, 2**16):
            answer += part
        _, status = os.waitpid(child, 0)
    except BaseException:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise
    finally:
        os.close(reader)
    try:
        found = json.loads(answer)
    except ValueError:
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(status)
        raise UsageError(
            "checkup.folder.ended", path=path, ended=ended, seconds=SECONDS, memory=sizes.told(MEMORY)
        ) from None
    if "problem" in found:
        raise UsageError(found["problem"], **found["values"])
    return found["result"]


def reason(error: BaseException) -> str:
    """Return an exception as one short line."""
    return shown(" ".join(told(error).split()), REASON)


def _answer(work: Callable[[], Any], path: str, writer: int) -> NoReturn:
    """Do the work in the child and write the answer; nothing that was buffered in the parent is written twice."""
    import resource

    try:
        faulthandler.disable()  # an abort is an answer here
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        with sizes.within_memory(MEMORY):
            try:
                answer = {"result": work()}
            except UsageError as problem:
                answer = {"problem": problem.key, "values": problem.values}
            except BaseException as error:  # a panic of a Rust library is no Exception
                answer = {"problem": "checkup.folder.load", "values": {"path": path, "reason": reason(error)}}
        sent = json.dumps(answer).encode()
        while sent:
            sent = sent[os.write(writer, sent) :]
    finally:
        os._exit(0)
