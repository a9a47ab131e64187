"""A data-parallel training that torchrun starts, and starts again after a rank has died.

    torchrun --nproc-per-node 2 --max-restarts 1 elastic.py FOLDER

Checkpoints are written every few steps; the doctor records into one file.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[1]))

from distributed import doctored
from softscope.doctor import watch_training

STEPS, EVERY, DIES_AT = 10, 4, 6


def main(folder: Path) -> None:
    """Train from the last checkpoint on; in the first attempt, the last rank dies."""
    # A store for each attempt: with torchrun's own, gloo finds the addresses of the processes that died (PyTorch 2.13).
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store{attempt}",
        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
    )  # fmt: skip
    rank, ranks = dist.get_rank(), dist.get_world_size()
    net = DistributedDataParallel(doctored.model())
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    saved, first = folder / "checkpoint.pt", 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        net.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    with watch_training(net, str(folder / "run.db"), every=1, first_step=first) as doctor:
        for step, batch in enumerate(doctored.batches(STEPS)):
            if step < first:
                continue
            if step == DIES_AT and rank == ranks - 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            share, _ = doctored.shares([doctored.BATCH // ranks] * ranks)
            loss = doctored.loss_of(net(*map(share, batch.inputs)), share(batch.target))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.step(loss=loss.item())
            if rank == 0 and (step + 1) % EVERY == 0:
                state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
                torch.save(state, saved)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
