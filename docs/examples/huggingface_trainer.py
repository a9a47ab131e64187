"""Hugging Face's Trainer with the doctor as a callback: a tiny GPT-2 with random weights learns to copy.

    pip install transformers accelerate
    python huggingface_trainer.py [run.db]

Nothing is fetched. Meanwhile, in another terminal: softscope watch run.db
"""

import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from softscope import tasks
from softscope.doctor import HuggingFaceCallback


def examples(many: int) -> list[dict[str, torch.Tensor]]:
    """Sequences that say something twice; -100 where nothing is asked."""
    batch = tasks.copy_batch(many, length=8, vocabulary=8, generator=torch.Generator().manual_seed(0))
    (tokens,) = batch.inputs
    # Trainer's models compare position i with label i + 1; the task's targets already stand one earlier.
    labels = torch.full_like(tokens, tasks.IGNORED)
    labels[:, 1:] = batch.target[:, :-1]
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]


def main(path: str = "run.db", steps: int = 20) -> None:
    """Train, and record."""
    torch.manual_seed(0)
    size = {"vocab_size": 9, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM"))
    with tempfile.TemporaryDirectory() as folder, HuggingFaceCallback(path) as doctor:
        arguments = TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=16, learning_rate=3e-3,
            logging_steps=5, save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=examples(512), callbacks=[doctor]).train()

    print(f"softscope watch {path} --once")


if __name__ == "__main__":
    main(*sys.argv[1:])
