"""What the process of an answer may use, set from inside before the answer runs: it cannot be undone from there."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

_NOBODY = 65534
_PARENT_DEATH_SIGNAL = 1  # of prctl


def set_sizes(cpu_seconds: int, memory: int) -> None:
    """Processor time, memory, no core file, no file beyond a megabyte, few open files."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 2**20)
    _limit(resource.RLIMIT_NOFILE, 64)
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)  # the first sends a signal that names the reason
    with contextlib.suppress(ValueError, OSError):  # macOS has the name and refuses the call
        _limit(resource.RLIMIT_AS, memory)


def drop_rights() -> bool:
    """Become nobody, if this is root: no limit on processes holds for root, and every file is open to it."""
    if os.geteuid() != 0:
        return False
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)  # of root, this changes the saved one too: there is no way back
    return True


def forbid_processes() -> None:
    """No new process and no new thread: 0, since the count is of all that belong to the user, here and elsewhere."""
    _limit(resource.RLIMIT_NPROC, 0)


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when the grader is gone; after the change of user, which forgets it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    now = resource.getrlimit(kind)[1]
    wanted = [
        value if now == resource.RLIM_INFINITY else min(value, now) for value in (soft, soft if hard is None else hard)
    ]
    resource.setrlimit(kind, (wanted[0], wanted[1]))
