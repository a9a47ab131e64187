"""Limits on the answer's process, set from inside before the answer runs; the answer cannot undo them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

_NOBODY = 65534
_PARENT_DEATH_SIGNAL = 1  # prctl option


def set_sizes(cpu_seconds: int, memory: int) -> None:
    """Limit CPU time and memory; allow no core file, no file over a megabyte, and few open files."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 2**20)
    _limit(resource.RLIMIT_NOFILE, 64)
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)  # the soft limit sends a signal that tells us the reason
    with contextlib.suppress(ValueError, OSError):  # macOS defines the constant but rejects the call
        _limit(resource.RLIMIT_AS, memory)


def drop_rights() -> bool:
    """Become nobody if we are root: root ignores process limits and can open every file."""
    if os.geteuid() != 0:
        return False
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)  # as root this sets the saved uid too, so there is no way back
    return True


def forbid_processes() -> None:
    """Forbid new processes and threads. The limit is 0 because the kernel counts all of the user's processes."""
    _limit(resource.RLIMIT_NPROC, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when the grader dies. Call it after changing user, which resets it."""
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
