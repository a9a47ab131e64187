"""A training loop of your own, with the doctor listening: a small transformer learns to copy.

    python train_loop.py [run.db]

Meanwhile, in another terminal: softscope watch run.db
"""

import sys

import torch
from torch.nn import functional

from softscope import tasks
from softscope.doctor import watch_training


def main(path: str = "run.db", steps: int = 60) -> None:
    """Train, and record."""
    model = tasks.SmallTransformer(vocabulary=9, length=16, d=32, heads=4, layers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)

    with watch_training(model, path) as watched:  # every reading goes into the file
        for _ in range(steps):
            batch = tasks.copy_batch(16, length=8, vocabulary=8, generator=generator)
            logits = model(*batch.inputs)
            loss = functional.cross_entropy(logits.flatten(0, -2), batch.target.flatten(), ignore_index=tasks.IGNORED)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watched.step(loss=loss)  # the step is complete: read it, if it is one of those to be read

    print(f"softscope watch {path} --once")


if __name__ == "__main__":
    main(*sys.argv[1:])
