"""Real processes that form one gloo group, and run functions together.

Importing torch takes seconds, so the processes live as long as the test session. A function and its arguments travel by
pickle: it must be at the top of a module in tests/, and import what it needs.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import multiprocessing as mp
import os
import tempfile
import traceback
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection


class RankError(AssertionError):
    """A function raised on some rank: the traceback of the first."""


class Ranks:
    """Processes 0 … many − 1. `run` calls a function on all of them; if one hangs, all are replaced."""

    def __init__(self, many: int) -> None:
        self.many = many
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []

    def run(self, function: Callable[..., Any], *args: Any, timeout: float = 120.0) -> list[Any]:
        """The results of `function(*args)`, by rank."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send((function, args))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(timeout):
                self.stop()
                raise RankError(f"rank {rank} of {self.many} did not answer within {timeout} s")
            try:
                answers.append(pipe.recv())
            except EOFError:
                self.stop()
                raise RankError(f"rank {rank} of {self.many} died") from None
        wrong = [f"rank {rank}:\n{told}" for rank, (fine, told) in enumerate(answers) if not fine]
        if wrong:
            self.stop()  # the others may wait for a message that never comes
            raise RankError("\n".join(wrong))
        return [result for _, result in answers]

    def stop(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.join()
        self._processes, self._pipes = [], []

    def _start(self) -> None:
        context = mp.get_context("spawn")
        folder = tempfile.mkdtemp()
        for rank in range(self.many):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(rank, self.many, f"{folder}/store", theirs), daemon=True)
            process.start()
            self._processes.append(process)
            self._pipes.append(ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _work(rank: int, many: int, store: str, pipe: Connection) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    from torch import distributed as dist

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(many), "LOCAL_RANK": str(rank)}
    limit = dt.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=many, timeout=limit)
    with contextlib.suppress(EOFError):
        while True:
            function, args = pipe.recv()
            try:
                pipe.send((True, function(*args)))
            except BaseException:
                pipe.send((False, traceback.format_exc()))
