"""A training on one rank or several that all name one record, as one script does. The tests start it for each rank.

    RANK=0 WORLD_SIZE=2 python recording.py FOLDER STORE STEPS FIRST_STEP DIES

The last rank kills itself before step DIES, if that is not negative.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
from torch import distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

import softscope as ss
from distributed import doctored
from softscope.doctor import Record, follow


def main(folder: Path, store: str, steps: int, first_step: int, dies: int) -> None:
    """Train and record; the loss in the record is the number of ranks, and tells who wrote a step."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder / store}", rank=rank, world_size=ranks)
    group = dist.group.WORLD if ranks > 1 else None

    def each(step: int) -> None:
        if rank == ranks - 1 and step == dies:
            os.kill(os.getpid(), signal.SIGKILL)

    net = doctored.model()
    with Record(folder / "run.db") as record, ss.probe(net, every=1, group=group, patience=20.0) as scope:
        follow(scope, record, first_step=first_step, loss=lambda _: float(ranks))
        doctored.train(net, scope, steps, lambda x: x, each=each)
    if scope.ranks is not None:
        told = {"last": scope.ranks.last.tolist(), "sent": list(scope.ranks.sent.values())}
        (folder / f"{rank}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
