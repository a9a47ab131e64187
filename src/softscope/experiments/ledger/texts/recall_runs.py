"""Training on associative recall: 16 keys, one layer, with and without 1/√d."""

from __future__ import annotations

import functools

STEPS, BATCH, PAIRS = 300, 16, 16
RATES = {"adam": 3e-3, "sgd": 0.3}
SEEDS = (0, 1, 2)


@functools.cache
def accuracy(d: int, scaled: bool, optimizer: str, seed: int) -> float:
    """Share of correct answers over the last 20 of 300 steps; chance is 1 in 16."""
    import torch

    from softscope import tasks

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices: more threads would only wait for each other
    try:
        options = tasks.AttentionOptions(scale="sqrt" if scaled else 1.0)
        model = tasks.RecallModel(d=d, vocabulary=PAIRS, options=options, seed=seed)
        history = tasks.train(
            model,
            lambda g: tasks.recall_batch(BATCH, pairs=PAIRS, generator=g),
            steps=STEPS,
            learning_rate=RATES[optimizer],
            optimizer=optimizer,  # type: ignore[arg-type]
            seed=seed,
        )
    finally:
        torch.set_num_threads(threads)
    return history.recent_accuracy(20)


def accuracies(d: int, scaled: bool, optimizer: str, seeds: tuple[int, ...] = SEEDS) -> list[float]:
    """One accuracy per seed."""
    return [accuracy(d, scaled, optimizer, seed) for seed in seeds]
