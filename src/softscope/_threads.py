"""The number of threads the engine may use, including the caller's."""

from __future__ import annotations

import os

from softscope._arguments.checks import whole_number

MOST = 1024  # more threads than any machine we know has cores


def _from_environment() -> int:
    """Read SOFTSCOPE_NUM_THREADS, or count the cores available to this process."""
    wanted = os.environ.get("SOFTSCOPE_NUM_THREADS", "").lstrip("0")
    if wanted.isascii() and wanted.isdecimal():
        return min(int(wanted[:9]), MOST)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


count = _from_environment()


def get_num_threads() -> int:
    """Return the number of threads a call may use, including the caller's own.

    >>> get_num_threads() >= 1
    True
    """
    return count


def set_num_threads(n: int) -> None:
    """Limit every later call to n threads, 1 to 1024; results are bit for bit the same for any n.

    Set SOFTSCOPE_NUM_THREADS before the import to choose the limit from outside; the default is the number of cores.
    Calls on tensors also respect `torch.get_num_threads()`.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    global count
    count = whole_number(n, "n", low=1, high=MOST)
