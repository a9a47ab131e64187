"""A loss over a vocabulary that no process holds as a whole.

torchrun --nproc-per-node 2 sharded_loss.py
"""

import torch
from torch import distributed as dist

import softscope.distributed as sd


def main() -> None:
    """Compute a loss, its gradient, and readings of whole rows."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    logits = torch.randn(4, (5, 3)[rank % 2], requires_grad=True)  # this rank's classes: parts may differ in length
    targets = torch.tensor([0, 7, 4, 2])  # among all classes, the same on every rank

    loss = sd.cross_entropy(logits, targets)  # the same on every rank
    loss.backward()  # on every rank; nothing more is sent

    entropy = sd.partition(logits.detach()).entropy.max()  # of whole rows
    weights = sd.softmax(logits.detach())[0].sum()  # of this rank's classes
    print(f"rank {rank}: loss {loss:.4f}, largest entropy {entropy:.4f}, weights of row 0 {weights:.4f}\n", end="")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
