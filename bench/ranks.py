"""How much does a probe of two ranks slow down a data-parallel training step, and how many bytes does it send?

    .venv/bin/python bench/ranks.py [--quick]

Unit: ratios to the bare step; 1.00 is free. Two processes with one thread each train copies of one model (6 layers, 512
tokens) with DistributedDataParallel over gloo. Three of them take turns in one run: bare, with a probe of both ranks
that does not read this step, and with one that reads it. The best of several turns counts, in processor time of the
slower rank, the background thread included. The script first checks that all compute the same, and that the probe sees
both ranks. "default, averaged" is the cost of the first 1000 steps with the default sampling.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack

import torch
from probe import NEVER, SIZES, best_of, stepper
from torch import distributed as dist
from torch import multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import softscope as ss
from softscope.doctor.listen.sampling import default_schedule
from softscope.doctor.ranks import fields

RANKS = 2
WAYS = {"not read": NEVER, "read": 1}


def work(rank: int, store: str, turns: int) -> None:
    """One rank: time the steps, and let the first rank print."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    for name, size in SIZES.items():
        with ExitStack() as scopes:
            _, bare = stepper(*size, wrap=DistributedDataParallel)
            contenders = {"bare": bare}
            scope = None
            for way, every in WAYS.items():
                model, contenders[way] = stepper(*size, wrap=DistributedDataParallel)
                scope = scopes.enter_context(ss.probe(model, every=every, group=dist.group.WORLD))
            losses = [[float(step()) for _ in range(2)] for step in contenders.values()]
            assert all(loss == losses[0] for loss in losses), "a run with the probe must match the bare one"
            times = torch.tensor(list(best_of(contenders, turns).values()), dtype=torch.float64)
        assert scope is not None
        dist.all_reduce(times, op=dist.ReduceOp.MAX)
        sent = torch.tensor(max(scope.ranks.sent.values(), default=0))
        dist.all_reduce(sent, op=dist.ReduceOp.MAX)
        if rank == 0:
            assert (scope.ranks.last == turns + 1).all(), "the probe must have seen both ranks in every step"
            tell(name, dict(zip(contenders, times.tolist(), strict=True)), int(sent))
    dist.destroy_process_group()


def tell(name: str, times: dict[str, float], sent: int) -> None:
    """Print the ratios."""
    bare = times.pop("bare")
    for way, seconds in times.items():
        print(f"{name:26} {way:20} {seconds / bare:6.3f}", flush=True)
    read = sum(map(default_schedule, range(1000))) / 1000
    average = (read * times["read"] + (1.0 - read) * times["not read"]) / bare
    print(f"{name:26} {'default, averaged':20} {average:6.3f}   ({read:.1%} of 1000 steps are read)")
    print(f"{name:26} bytes of a read step {sent}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few turns")
    turns = 3 if parser.parse_args().quick else 9
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"{folder}/store", turns), nprocs=RANKS)  # type: ignore[no-untyped-call]
    print(f"96 layers × 96 heads: {4 * fields.NUMBERS * 96 * 96 / 1e6:.1f} MB for each rank and read step")


if __name__ == "__main__":
    main()
