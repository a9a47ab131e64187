"""Two system-call filters: allow what computing needs; everything else fails with "operation not permitted".

The first one also lets files be read, since the answer's imports do so; it stands before any of them. The second one
stands before the answer's own code, and no file is opened after it. Filters add up, so the first allows what installs
the second.

Files, sockets, new processes and signals to others all go through system calls, so one list closes every way out. A
deny list would have to be right for each new kernel; this allow list only has to be sufficient. The filter covers
Linux on x86-64 and arm64; elsewhere there is none, and `install` says so.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys

# Name: number on x86-64, number on arm64 (None if arm64 has no such call).
ALLOWED: dict[str, tuple[int, int | None]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "poll": (7, None), "ppoll": (271, 73),
    "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "pread64": (17, 67),
    "readv": (19, 65), "writev": (20, 66), "select": (23, None), "pselect6": (270, 72), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93),
    "uname": (63, 160), "getcwd": (79, 17), "gettimeofday": (96, 169), "getrusage": (98, 165), "sysinfo": (99, 179),
    "times": (100, 153), "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177),
    "getppid": (110, 173), "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "restart_syscall": (219, 128), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94), "set_robust_list": (273, 99),
    "getcpu": (309, 168), "getrandom": (318, 278), "membarrier": (324, 283), "rseq": (334, 293),
}  # fmt: skip
# For imports: looking at files, and what narrows the process's rights further.
READING: dict[str, tuple[int, int | None]] = {
    "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "prctl": (157, 167), "capset": (126, 91),
}  # fmt: skip
# Opening a file: the numbers, and which argument holds the flags. openat2 hides its flags behind a pointer, so no.
OPENING: dict[str, tuple[int, int | None, int]] = {"open": (2, None, 1), "openat": (257, 56, 2)}
_NOT_READING = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC: the same on both machines
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # index into ALLOWED, the kernel's id for it
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # prctl constants
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06  # opcodes of the kernel's filter language
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_ARCHITECTURE, _NUMBER, _ARGUMENTS = 4, 0, 16  # their offsets in the data a filter sees


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Step)))


def available() -> bool:
    """Check whether there is a filter for this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def install(*, reading: bool) -> bool:
    """Install a filter permanently, with or without reading; return False if there is none or the kernel rejects it."""
    if not available():
        return False
    place, architecture = _MACHINES[platform.machine()]
    allowed = {**ALLOWED, **READING} if reading else ALLOWED
    numbers = [number for pair in allowed.values() if (number := pair[place]) is not None]
    opening = [(number, call[2]) for call in OPENING.values() if reading and (number := call[place]) is not None]
    steps = _steps(architecture, numbers, opening)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    program = _Program(len(steps), (_Step * len(steps))(*(_Step(*step) for step in steps)))
    zero = ctypes.c_ulong(0)
    if prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero) != 0:
        return False
    return bool(prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), zero, zero) == 0)


def _steps(architecture: int, numbers: list[int], opening: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Kill on calls from another architecture (32-bit ones have other numbers); then check number by number.

    A jump skips that many steps. After the numbers come "refuse" and "allow", then four steps for each way of opening.
    """
    steps = [(_LOAD, 0, 0, _ARCHITECTURE), (_IF_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    steps.append((_LOAD, 0, 0, _NUMBER))
    n, refuse, allow = len(numbers) + len(opening), (_RETURN, 0, 0, _FAIL | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    steps += [(_IF_EQUAL, n - i, 0, number) for i, number in enumerate(numbers)]
    for i, (number, _) in enumerate(opening):
        steps.append((_IF_EQUAL, (n - len(numbers) - i) + 1 + 4 * i, 0, number))
    steps += [refuse, allow]
    for _, argument in opening:
        steps += [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument), (_IF_ANY_BIT, 0, 1, _NOT_READING), refuse, allow]
    return steps
