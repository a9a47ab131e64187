"""What are two threads worth: alone, in turns with PyTorch, and with a core taken by another process?

    .venv/bin/python bench/threads.py [--quick]

Unit: ratios. "alone 1.9" means that one thread takes 1.9 times as long as all threads. "in turns" is the same if calls
of PyTorch come between ours; its threads then spin on the cores that ours want. "core taken" compares the mean times of
calls over half a second while another process computes without end: below 1, more threads are slower than one.
PyTorch's figures stand beside ours; results are checked before they are timed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from harness import arguments, shape_name

import softscope as ss

SHAPES = [(256, 1000), (1000, 1000), (40_000, 100), (4096, 1024), (1024, 4096), (32, 131_072)]
CORES = ss.get_num_threads()

Call = Callable[[], object]


def seconds(calls: list[Call], turns: int) -> list[list[float]]:
    """The time of every turn of each call."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(turns):
        for call, times in zip(calls, found, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return found


def gain(call: Call, set_threads: Callable[[int], None], turns: int, between: Call | None = None) -> float:
    """The median time on one thread divided by that on all threads; `between` comes after every call of both."""
    medians = []
    for threads in (1, CORES):
        set_threads(threads)
        medians.append(statistics.median(seconds([call] if between is None else [call, between], turns)[0]))
    return medians[0] / medians[1]


def mean_gain(call: Call, set_threads: Callable[[int], None]) -> float:
    """The same with means over half a second, because a stall now and then is what hurts."""
    means = []
    for threads in (1, CORES):
        set_threads(threads)
        times: list[float] = []
        while sum(times) < 0.5:
            times += seconds([call], 10)[0]
        means.append(statistics.mean(times))
    return means[0] / means[1]


@contextmanager
def core_taken() -> Iterator[None]:
    """Another process that computes without end."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.3)
    try:
        yield
    finally:
        other.kill()
        other.wait()
        time.sleep(1.0)  # so long may we keep away from PyTorch's threads


def pairs(x: np.ndarray) -> dict[str, tuple[Call, Call]]:
    """Our version and PyTorch's of each function."""
    t, out, t_out = torch.from_numpy(x), np.empty_like(x), torch.empty(x.shape)
    return {
        "softmax": (lambda: ss.softmax(x, out=out), lambda: torch.softmax(t, -1, out=t_out)),
        "logsumexp": (lambda: ss.logsumexp(x), lambda: torch.logsumexp(t, -1)),
    }


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    print(f"{'':17}{'':11}{'alone':>16}{'in turns':>16}{'core taken':>16}")
    for shape in SHAPES[1:6:2] if options.quick else SHAPES:
        x = rng.standard_normal(shape, dtype=np.float32)
        turns = 60 if x.size > 1_500_000 else 400
        for name, (ours, theirs) in pairs(x).items():
            np.testing.assert_allclose(np.asarray(ours()), theirs().numpy(), rtol=1e-3, atol=1e-5)
            line = f"{shape_name(shape):>15}  {name:11}"
            both = ((ours, ss.set_num_threads, theirs), (theirs, torch.set_num_threads, ours))
            alone = [gain(call, setter, turns) for call, setter, _ in both]
            turned = [gain(call, setter, turns, between) for call, setter, between in both]
            with core_taken():
                taken = [mean_gain(call, setter) for call, setter, _ in both]
            for mine, pytorchs in (alone, turned, taken):
                line += f"  {mine:5.2f} ({pytorchs:.2f})"
            print(line, flush=True)
    print("\nours, and PyTorch's in brackets: one thread's time divided by that of all threads")


if __name__ == "__main__":
    main()
