"""Limits on the answer's process, set from inside before the answer runs; the answer cannot undo them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

_NOBODY = 65534
_PARENT_DEATH_SIGNAL, _KEEP_CAPABILITIES = 1, 8  # prctl options
_CAPABILITY_VERSION = 0x20080522
_CAN_READ = (2, 1)  # CAP_DAC_READ_SEARCH; a container's root may have only CAP_DAC_OVERRIDE


def set_sizes(cpu_seconds: int, memory: int) -> None:
    """Limit CPU time and memory; allow no core file, no file over a megabyte, and few open files."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 2**20)
    _limit(resource.RLIMIT_NOFILE, 64)
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)  # the soft limit sends a signal that tells us the reason
    with contextlib.suppress(ValueError, OSError):  # macOS defines the constant but rejects the call
        _limit(resource.RLIMIT_AS, memory)


def leave_folders(path: str) -> None:
    """Work in a folder that no longer exists: nothing is found in it, made in it, or left behind."""
    try:
        os.mkdir(path, 0o700)
        os.chdir(path)
        os.rmdir(path)
    except OSError:  # nowhere to make one
        os.chdir("/")


def drop_rights() -> bool:
    """Become nobody if we are root: root ignores process limits and can open every file.

    Python may be installed where only root can read it, so reading remains until `drop_reading`.
    """
    if os.geteuid() != 0:
        return False
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_KEEP_CAPABILITIES, ctypes.c_ulong(1))
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)  # as root this sets the saved uid too, so there is no way back
    if sys.platform == "linux" and not any(_keep_only(1 << one) for one in _CAN_READ):
        drop_reading()
    return True


def drop_reading() -> None:
    """Give up what `drop_rights` left."""
    if sys.platform == "linux" and not _keep_only(0):
        os._exit(1)


def _keep_only(capabilities: int) -> bool:
    """Reduce the process's capabilities to these; return False if it does not have them."""
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(capabilities, capabilities)  # effective, permitted, inheritable; then the higher bits
    return bool(ctypes.CDLL(None).capset(head, sets) == 0)


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
