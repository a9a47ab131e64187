"""A loop with Hugging Face's Accelerate and accumulated gradients, with the doctor listening on every rank.

    pip install accelerate
    python accelerate_loop.py [run.db]             or, on two ranks: torchrun --nproc-per-node 2 accelerate_loop.py

Meanwhile, in another terminal: softscope watch run.db
"""

import sys

import torch
from accelerate import Accelerator
from torch.nn import functional

from softscope import tasks
from softscope.doctor import watch_training


def main(path: str = "run.db", steps: int = 30) -> None:
    """Train, and record."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = tasks.SmallTransformer(vocabulary=9, length=16, d=32, heads=4, layers=2)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=3e-3))
    generator = torch.Generator().manual_seed(accelerator.process_index)  # each rank has its own batches

    with watch_training(model, path) as watched:
        for _ in range(2 * steps):
            batch = tasks.copy_batch(16, length=8, vocabulary=8, generator=generator)
            with accelerator.accumulate(model):
                logits = model(*batch.inputs).flatten(0, -2)
                loss = functional.cross_entropy(logits, batch.target.flatten(), ignore_index=tasks.IGNORED)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:  # the optimizer has stepped
                watched.step(loss=loss)

    accelerator.print(f"softscope watch {path} --once")
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
