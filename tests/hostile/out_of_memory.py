"""A program, run with `failing.cc` preloaded: every kernel, with each of its allocations failing in turn.

Each attempt is the child of a fork, whose threads and scratch memory are new. It must raise MemoryError or succeed, and
the same call must succeed afterwards. Prints one line per kernel: its name and how many allocations failed.
"""

import ctypes
import os
import pathlib
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import softscope as ss
from softscope import _engine
from softscope._arguments.attention import Options
from softscope._backends.engine import attention, sparse_attention

THREADS = 3
PATIENCE = 60  # seconds, even on a busy machine


def kernels() -> dict[str, Callable[[], Any]]:
    """Calls that between them reach every place where the engine allocates."""
    rng = np.random.default_rng(0)
    many, long = rng.normal(size=(96, 1500)), rng.normal(size=(3, 300_000))
    calls: dict[str, Callable[[], Any]] = {}
    short, wide = many.astype(np.float16), long.astype(np.float16)  # which need the most scratch memory
    for kind, x, axis in (("rows", short, -1), ("rows by columns", short, 0), ("long rows", wide, -1)):
        for f in (ss.softmax, ss.log_softmax, ss.logsumexp, ss.sparsemax, ss.partition):
            calls[f"{f.__name__}, {kind}"] = partial(f, x, axis=axis)
        calls[f"entmax, {kind}"] = partial(ss.entmax, x, 1.5, axis=axis)
        calls[f"jacobian_product, {kind}"] = partial(ss.jacobian_product, abs(x), x, axis=axis)
    q, k, v = (rng.normal(size=(2, 2, n, 16)).astype(np.float32) for n in (130, 2100, 2100))
    calls["attention"] = partial(ss.attention, q, k, v)
    calls["attention, few queries"] = partial(ss.attention, *(x[:1, :1] for x in (q[:, :, :3], k, v)))
    calls["attention_partition"] = partial(ss.attention_partition, q, k)
    calls["gradient_readings"] = partial(ss.gradient_readings, q, k, v, q)
    calls["attention's gradients"] = partial(backward, q, k, v)
    calls["sparse attention"] = partial(ss.attention, q, k, v, alpha=1.5)
    calls["sparse attention's gradients"] = partial(sparse_backward, q, k, v)
    return calls


def backward(q: Any, k: Any, v: Any) -> list[Any]:
    """The gradients as autograd gets them."""
    options = Options(scale=0.25, positions=np.arange(q.shape[-2]))
    out, state = np.empty_like(q), np.empty((*q.shape[:-1], attention.STATE_NUMBERS))
    attention.run(q, k, v, options, out, state, statistics=False)
    gradients = [np.empty_like(q), np.empty_like(k), np.empty_like(v), np.empty(q.shape[:-1])]
    attention.run_backward(q, k, v, options, out, state, q, gradients)
    return gradients


def sparse_backward(q: Any, k: Any, v: Any) -> list[Any]:
    """The gradients of sparse attention as autograd gets them."""
    options = Options(scale=0.25, positions=np.arange(q.shape[-2]), alpha=1.5)
    out, found = np.empty_like(q), np.empty((*q.shape[:-1], sparse_attention.NUMBERS))
    sparse_attention.run(q, k, v, options, out, found, statistics=False)
    gradients = [np.empty_like(q), np.empty_like(k), np.empty_like(v), np.empty(q.shape[:-1])]
    sparse_attention.run_backward(q, k, v, options, found, q, gradients, None)
    return gradients


def numbers(found: Any) -> list[bytes]:
    """Every bit of a result."""
    if isinstance(found, ss.Partition):
        found = [found.lse, found.entropy, found.jacobian_trace]
    if not isinstance(found, list | tuple):
        found = [found]
    return [np.asarray(x).tobytes() for x in found]


def addresses() -> tuple[int, int]:
    """Where the engine's code lies in memory."""
    name = pathlib.Path(_engine.__file__).name
    lines = [line.split() for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith(name)]
    found = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    return min(low for low, _ in found), max(high for _, high in found)


def child(work: Callable[[], int]) -> int:
    """Run it in a child; return its exit code, or minus the signal that ended it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE)
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
            os._exit(120)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Try every kernel. Nothing is computed in this process itself, so that children start without scratch memory."""
    failing = ctypes.CDLL(None)
    failing.fail_allocation.argtypes = [ctypes.c_long, ctypes.c_size_t, ctypes.c_size_t]
    ss.set_num_threads(THREADS)
    where = addresses()
    for name, call in kernels().items():
        reader, writer = os.pipe()

        def count(call: Callable[[], Any] = call, writer: int = writer) -> int:
            failing.fail_allocation(-1, *where)
            call()
            os.write(writer, b"%d" % failing.allocations())
            return 0

        assert child(count) == 0, name
        most = int(os.read(reader, 20))
        os.close(reader)
        os.close(writer)
        for after in range(most):

            def fail(call: Callable[[], Any] = call, after: int = after) -> int:
                failing.fail_allocation(after, *where)
                try:
                    first = call()
                except MemoryError:
                    first = None
                failing.fail_allocation(-1, 0, 0)
                again = call()
                return 0 if first is None or numbers(first) == numbers(again) else 121

            code = child(fail)
            if code != 0:
                print(f"{name}: allocation {after} of {most} fails, and the process ends with {code}")
                sys.exit(1)
        print(f"{name}: {most}")


if __name__ == "__main__":
    main()
