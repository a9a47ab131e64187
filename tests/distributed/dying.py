"""A training on several ranks of which one dies, hangs, is slow or skips a step. The tests start it once for each rank.

    RANK=0 WORLD_SIZE=3 python dying.py KIND STEP FOLDER

The ranks do not wait for each other: then each can tell whether it was held up.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

import softscope as ss
from distributed import doctored

STEPS = 12
PATIENCE = {True: 5.0, False: 40.0}  # seconds: short only where a rank is gone, since a busy machine makes any slow


def main(kind: str, when: float, folder: str) -> None:
    """Train; the last rank behaves as told, before this step or after a fraction of it."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    net = doctored.model()
    last = rank == ranks - 1

    def each(step: int) -> None:
        if kind == "returns" and not last and step > when:
            time.sleep(1.0)  # so that there is a training to come back to
        if not last or step != int(when):
            return
        if kind == "dies":
            kill = threading.Timer((when - step) * 0.05, os.kill, (os.getpid(), signal.SIGKILL))  # a step takes 50 ms
            kill.daemon = True
            kill.start()
            kill.join(0.0 if when > step else None)
        if kind == "raises":
            raise RuntimeError("out of memory")
        time.sleep({"hangs": 3.5 * PATIENCE[True], "slow": 1.0, "returns": 3.0}.get(kind, 0.0))

    patience = 1.0 if kind == "returns" else PATIENCE[kind in ("hangs", "dies")]
    steps = STEPS - (1 if last and kind == "skips" else 0)
    told: list[str] = []
    longest = 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ss.probe(net, every=1, group=dist.group.WORLD, patience=patience) as scope:
            held: Any = Held(each)
            doctored.train(net, scope, steps, lambda x: x, each=held)
            longest = held.longest
    told = [str(w.message) for w in caught if "softscope" in str(w.message)]
    found = {
        "steps": [s.step for s in scope.history().snapshots],
        "told": told,
        "held": longest > patience,
        "ranks": scope.ranks.last.tolist(),
        "total": float(sum(p.double().sum() for p in net.parameters())),
    }
    Path(folder, f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")


class Held:
    """Measures the longest time between two steps."""

    def __init__(self, each: Any) -> None:
        self._each, self.longest, self._at = each, 0.0, time.monotonic()

    def __call__(self, step: int) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._at)
        self._each(step)
        self._at = time.monotonic()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
