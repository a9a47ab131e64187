"""The number of threads the engine may use, including the caller's."""

from __future__ import annotations

import os

from softscope._arguments.checks import whole_number
from softscope._natural_number import natural_number


def _from_environment() -> int:
    """Read SOFTSCOPE_NUM_THREADS, or count the cores available to this process."""
    wanted = natural_number(os.environ.get("SOFTSCOPE_NUM_THREADS", ""))
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


count = _from_environment()


def get_num_threads() -> int:
    """Return the number of threads a call may use, including the caller's own.

    >>> get_num_threads() >= 1
    True
    """
    return count


def set_num_threads(n: int) -> None:
    """Limit every later call to n threads; results are bit for bit the same for any n.

    Set SOFTSCOPE_NUM_THREADS before the import to choose the limit from outside; the default is the number of cores.
    Calls on tensors also respect `torch.get_num_threads()`.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    global count
    count = whole_number(n, "n", low=1)
