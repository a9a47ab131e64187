"""What the tests of callbacks run on every rank: trainings of a small model on two ranks, each with its own batches."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import softscope
from softscope import tasks
from softscope.doctor import HuggingFaceCallback, LightningCallback, watch_training


class Probe:
    """The probe, which writes down what it was called with."""

    def __init__(self) -> None:
        self.group: Any = None
        self.model = ""

    def __call__(self, model: Any, *, group: Any = None, **options: Any) -> Any:
        self.group, self.model = group, type(model).__name__
        return softscope.probe(model, group=group, **options)


def _batch(seed: int) -> Any:
    return tasks.copy_batch(4, length=8, vocabulary=8, generator=torch.Generator().manual_seed(seed))


def _model() -> Any:
    torch.manual_seed(0)
    return tasks.SmallTransformer(vocabulary=9, length=16, d=16, heads=2, layers=1)


def _loss(model: Any, step: int) -> torch.Tensor:
    batch = _batch(2 * step + dist.get_rank())
    logits = model(*batch.inputs).flatten(0, 1)
    return torch.nn.functional.cross_entropy(logits, batch.target.flatten(), ignore_index=tasks.IGNORED)


def _as_torchrun_does() -> None:
    """Set what trainers look for; nobody connects there, because the group has been formed."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "LOCAL_WORLD_SIZE": str(dist.get_world_size())}
    os.environ |= {"GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "none"}


def plain_loop(path: str) -> tuple[str, int]:
    """A loop with DistributedDataParallel: the class that was probed, and the ranks in the group."""
    probe, model = Probe(), DistributedDataParallel(_model())
    optimizer = torch.optim.AdamW(model.parameters())
    with watch_training(model, path, every=1, first_step=10, probe=probe) as watched:
        for step in range(3):
            loss = _loss(model, step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watched.step(loss=loss)
    return probe.model, probe.group.size()


def with_accelerate(path: str) -> tuple[str, int]:
    """The same with Accelerate, which accumulates two batches for each step."""
    from accelerate import Accelerator

    _as_torchrun_does()
    accelerator, probe, model = Accelerator(cpu=True, gradient_accumulation_steps=2), Probe(), _model()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    assert isinstance(model, DistributedDataParallel)
    with watch_training(model, path, every=1, probe=probe) as watched:
        for step in range(6):
            with accelerator.accumulate(model):
                loss = _loss(model, step)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                watched.step(loss=loss)
    return probe.model, probe.group.size()


def with_hugging_face(path: str) -> tuple[str, int]:
    """Hugging Face's Trainer itself."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    _as_torchrun_does()
    size = {"vocab_size": 9, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM"))
    arguments = TrainingArguments(
        f"{path}-trainer", max_steps=3, per_device_train_batch_size=2, save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True, ddp_backend="gloo", logging_steps=1,
    )  # fmt: skip
    tokens = _batch(0).inputs[0]
    probe = Probe()
    with HuggingFaceCallback(path, every=1, probe=probe) as callback:
        data = [{"input_ids": row, "labels": row} for row in tokens]
        Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
    return probe.model, probe.group.size()


def with_lightning(path: str) -> tuple[str, int]:
    """Lightning's Trainer itself."""
    from lightning.pytorch import LightningModule, Trainer

    class Copies(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()

        def training_step(self, number: torch.Tensor, _: int) -> torch.Tensor:
            return _loss(self.model, int(number))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters())

    _as_torchrun_does()
    probe = Probe()
    trainer = Trainer(
        accelerator="cpu", strategy="ddp", devices=2, max_steps=3, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[LightningCallback(path, every=1, probe=probe)],
    )  # fmt: skip
    trainer.fit(Copies(), torch.utils.data.DataLoader(torch.arange(6)))
    assert (trainer.world_size, trainer.global_rank) == (2, dist.get_rank())
    return probe.model, probe.group.size()


def groups(path: str) -> list[tuple[bool, int]]:
    """Whether this rank attaches, and to a group of how many (0: no group), for each way to say which ranks."""
    alone, second = dist.new_group([0]), dist.new_group([1])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    found = []
    for number, group in enumerate(("all", None, alone, second, mesh, (mesh, "dp"))):
        probe = Probe()
        with watch_training(_model(), f"{path}{number}.db", group=group, probe=probe) as watched:
            watched.step()
            found.append((watched.scope is not None, 0 if probe.group is None else probe.group.size()))
    return found
