"""What does a vocabulary-parallel loss cost: ours, PyTorch's loss_parallel, and gathering the logits?

    .venv/bin/python bench/sharded_rows.py [--quick]

Two processes with one thread each; each holds half of the classes. A turn is forward and backward pass of the mean
cross-entropy, on both ranks at once. Unit: ratios; "loss_parallel 3.0" means that it takes 3.0 times as long as ours.
The contenders take turns; a turn begins when both ranks are ready and ends when the slower one is done. Losses and
gradients are compared before they are timed. The bytes are those that each rank sends through torch.distributed in one
turn, counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

import torch
from harness import Ratios, finish, machine, parser, shape_name
from torch import Tensor, multiprocessing
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn.functional import cross_entropy

import softscope.distributed as sd
from softscope.distributed.counting import counted
from softscope.distributed.traffic import bytes_sent, gathered_logits

RANKS = 2
SHAPES = [(256, 32_768), (256, 131_072), (2048, 32_768)]


def turns(x: Tensor, targets: Tensor) -> dict[str, Callable[[], tuple[Tensor, Tensor]]]:
    """Each contender's loss, and its gradient of this rank's logits."""
    mesh, classes, rank = init_device_mesh("cpu", (RANKS,)), x.shape[-1], dist.get_rank()

    def ours() -> tuple[Tensor, Tensor]:
        part = x.requires_grad_()
        loss = sd.cross_entropy(part, targets)
        return loss.detach(), torch.autograd.grad(loss, part)[0]

    def theirs() -> tuple[Tensor, Tensor]:
        part = x.requires_grad_()
        with loss_parallel():
            loss = cross_entropy(DTensor.from_local(part, mesh, [Shard(1)], run_check=False), targets)
            (slope,) = torch.autograd.grad(loss, part)
        return loss.detach().to_local(), slope

    def gathered() -> tuple[Tensor, Tensor]:
        parts = [torch.empty_like(x) for _ in range(RANKS)]
        dist.all_gather(parts, x.detach())
        whole = torch.cat(parts, dim=-1).requires_grad_()
        loss = cross_entropy(whole, targets)
        (slope,) = torch.autograd.grad(loss, whole)
        return loss.detach(), slope[:, rank * classes : (rank + 1) * classes].contiguous()

    return {"ours": ours, "loss_parallel": theirs, "gather": gathered}


def fastest(contenders: dict[str, Callable[[], object]], many: int) -> dict[str, float]:
    """The shortest time of each in seconds, of the slower rank."""
    found = torch.empty((many, len(contenders)), dtype=torch.float64)
    for turn in range(many):
        for place, call in enumerate(contenders.values()):
            dist.barrier()
            start = time.perf_counter()
            call()
            found[turn, place] = time.perf_counter() - start
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return dict(zip(contenders, found.amin(dim=0).tolist(), strict=True))


def work(rank: int, store: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    ratios = Ratios("Vocabulary-parallel cross-entropy, forward and backward, on two ranks")
    for rows, classes in SHAPES[:1] if options.quick else SHAPES:
        mine = torch.Generator().manual_seed(rank)
        x = 3.0 * torch.randn((rows, classes // RANKS), generator=mine)
        targets = torch.randint(0, classes, (rows,), generator=torch.Generator().manual_seed(9))
        contenders = turns(x, targets)
        want_loss, want_slope = contenders["gather"]()
        sent = {}
        for name, turn in contenders.items():
            loss, slope = turn()
            torch.testing.assert_close(loss, want_loss, rtol=1e-5, atol=0.0)
            torch.testing.assert_close(slope, want_slope, rtol=1e-3, atol=1e-9)
            with counted() as found:
                turn()
            sent[name] = found
        rule = {"rows": rows, "ranks": RANKS, "dtype": x.dtype}
        assert sent["ours"].bytes == bytes_sent("cross_entropy", **rule)
        assert sent["gather"].bytes == gathered_logits(classes=classes, **rule)
        times = fastest(contenders, 5 if options.quick else 21)
        if rank == 0:
            ratios.add("cross_entropy", shape_name((rows, classes)), times)
            print(
                " " * 20,
                *(f"{name}: {found.messages} messages, {found.bytes:,} bytes;" for name, found in sent.items()),
            )
    if rank == 0:
        finish(ratios, options.chart)
    dist.destroy_process_group()


if __name__ == "__main__":
    given = parser(__doc__).parse_args()
    print(machine())
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (f"{folder}/store", given), RANKS)
