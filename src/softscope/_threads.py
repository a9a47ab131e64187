"""How many threads the engine may use, the caller's among them."""

from __future__ import annotations

import os

from softscope._arguments.checks import whole_number


def _from_environment() -> int:
    """SOFTSCOPE_NUM_THREADS, or as many as there are cores for this process."""
    wanted = os.environ.get("SOFTSCOPE_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


count = _from_environment()


def get_num_threads() -> int:
    """How many threads a call may use, the caller's own among them.

    >>> get_num_threads() >= 1
    True
    """
    return count


def set_num_threads(n: int) -> None:
    """Let every later call use at most n threads; results are the same to the bit for any n.

    SOFTSCOPE_NUM_THREADS sets it from outside, before the import; else it is the number of cores. Tensors take no
    more than `torch.get_num_threads()` either.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    global count
    count = whole_number(n, "n", low=1)
