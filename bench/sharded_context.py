"""How close do two ranks come to half the time of one process, if they share a sequence?

    .venv/bin/python bench/sharded_context.py [--quick]

Unit: ratios. "limit 1.1" means that two ranks take 1.1 times as long as half of the time of one process plus the time
to send the same messages with nothing to compute meanwhile; at most 1.3 is wanted. "one process 1.8" means that one
process takes 1.8 times as long as two ranks. Each rank has one thread, and so has the one process. float32. All take
turns in one run, the slower rank counts, the best of several turns counts, and results are checked before they are
timed.
"""

from __future__ import annotations

import multiprocessing as mp
import tempfile
import time
from collections.abc import Callable

import torch
from harness import arguments, shape_name
from torch import distributed as dist

import softscope as ss
from softscope import distributed as sd
from softscope.distributed._ring import KEYS, Passing

RANKS = 2
SHAPES = [(1, 8, 4096, 64), (1, 4, 8192, 64)]


def slowest(function: Callable[[], object]) -> float:
    """The time until the last rank has finished, if all begin together."""
    dist.barrier()
    start = time.perf_counter()
    function()
    took = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return float(took)


def both_ways(attend: Callable[..., torch.Tensor], given: list[torch.Tensor]) -> Callable[[], object]:
    """A call with its backward pass, if the tensors want one."""

    def run() -> object:
        out = attend(*given)
        return torch.autograd.grad(out, given, torch.ones_like(out)) if given[0].requires_grad else out

    return run


def sent(blocks: int, numbers: int) -> None:
    """So many messages around the ring, one after the other."""
    rank, block = dist.get_rank(), torch.zeros(numbers)
    for _ in range(blocks):
        block = Passing(block, (rank + 1) % RANKS, numbers, (rank - 1) % RANKS, dist.group.WORLD, KEYS).arrived()


def compare(shape: tuple[int, ...], causal: bool, backward: bool, turns: int) -> None:
    torch.manual_seed(0)
    whole = [torch.randn(shape) for _ in range(3)]
    layout = "zigzag" if causal else "contiguous"
    shards = [sd.shard(x, layout=layout).requires_grad_(backward) for x in whole]
    given = [x.requires_grad_(backward) for x in whole]
    one = both_ways(lambda q, k, v: ss.attention(q, k, v, causal=causal), given)
    ring = both_ways(lambda q, k, v: sd.attention(q, k, v, causal=causal, layout=layout), shards)
    with torch.no_grad():
        want = sd.shard(ss.attention(*whole, causal=causal), layout=layout)
        off = float((sd.attention(*shards, causal=causal, layout=layout) - want).abs().max())
    assert off < 1e-5
    messages, numbers = (4 if backward else 1), 2 * shards[0].numel()
    who = {
        "one": lambda: one() if dist.get_rank() == 0 else None,
        "one beside one": one,
        "ring": ring,
        "sent": lambda: sent(messages, numbers),
    }
    times = dict.fromkeys(who, float("inf"))
    for _ in range(turns):
        for name, function in who.items():
            times[name] = min(times[name], slowest(function))
    limit = times["one"] / RANKS + times["sent"]
    if dist.get_rank() == 0:
        print(
            f"{shape_name(shape):>18}  {'causal' if causal else 'full':6}  {'both ways' if backward else 'forward':9}"
            f"  limit {times['ring'] / limit:5.2f}  one process {times['one'] / times['ring']:5.2f}"
            f"  (sending alone takes {times['sent'] / times['ring']:.2f} of the time; one process beside another"
            f" {times['one beside one'] / times['one']:.2f} of one alone)",
            flush=True,
        )


def work(rank: int, store: str, turns: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    for shape in SHAPES:
        for causal in (False, True):
            for backward in (False, True):
                compare(shape, causal, backward, turns)
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    turns = 3 if arguments(__doc__).quick else 8
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("spawn")
        ranks = [context.Process(target=work, args=(rank, f"{folder}/store", turns)) for rank in range(RANKS)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()


if __name__ == "__main__":
    main()
