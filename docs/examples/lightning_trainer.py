"""Lightning's Trainer with the doctor as a callback: a small transformer learns to copy.

    pip install lightning
    python lightning_trainer.py [run.db]

With `pytorch_lightning` in place of `lightning.pytorch` it is the same. Meanwhile, in another terminal:
softscope watch run.db
"""

import sys

import lightning.pytorch as pl
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from softscope import tasks
from softscope.doctor import LightningCallback


class Copies(pl.LightningModule):
    """Learns to say something twice."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tasks.SmallTransformer(vocabulary=9, length=16, d=32, heads=4, layers=2)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        """The loss of a batch."""
        tokens, target = batch
        return functional.cross_entropy(self.model(tokens).flatten(0, 1), target.flatten(), ignore_index=tasks.IGNORED)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW."""
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def main(path: str = "run.db", steps: int = 30) -> None:
    """Train, and record."""
    batch = tasks.copy_batch(16 * steps, length=8, vocabulary=8, generator=torch.Generator().manual_seed(0))
    trainer = pl.Trainer(
        max_steps=steps, accelerator="cpu", callbacks=[LightningCallback(path)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Copies(), DataLoader(TensorDataset(*batch.inputs, batch.target), batch_size=16))

    print(f"softscope watch {path} --once")


if __name__ == "__main__":
    main(*sys.argv[1:])
