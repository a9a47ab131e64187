"""Associative recall with weights other than softmax's: which kinds of weights can learn to look things up."""

from __future__ import annotations

import functools
import math
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple

import softscope as ss
from softscope._one_thread import one_thread
from softscope._text import Text
from softscope.experiments.ledger.claim import current_seed
from softscope.experiments.recall import LEARNED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAIRS, D, STEPS, SEEDS = 16, 64, 300, 5
# Key tokens in all. With as many as there are pairs, a query always meets the same keys; with more, always others.
VOCABULARIES = (16, 64)
TASK = Text(
    zh=f"联想回忆，{PAIRS} 对，共 {VOCABULARIES[0]} 或 {VOCABULARIES[1]} 个键，d = {D}，{STEPS} 步，各 {SEEDS} 个种子，最差到最好的准确率",
    en=f"associative recall, {PAIRS} pairs, {VOCABULARIES[0]} or {VOCABULARIES[1]} keys in all, d = {D}, {STEPS} steps, {SEEDS} seeds each, accuracy from worst to best",
)


def _over_sum(x: Any) -> Any:
    return x / x.sum(-1, keepdim=True)


# From scores (..., keys) to weights. Softmax takes the same path as the others, so that the comparison is fair.
WEIGHINGS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: ss.softmax(x),
    "softmax, no gradient": lambda x: ss.softmax(x).detach(),
    "sigmoid": lambda x: x.sigmoid(),
    "sigmoid − ln n": lambda x: (x - math.log(x.shape[-1])).sigmoid(),
    "x/n": lambda x: x / x.shape[-1],
    "x/Σx": _over_sum,
}


class Recalled(NamedTuple):
    """What came of training with one kind of weights.

    Attributes:
        worst: lowest accuracy of all runs.
        best: highest accuracy of all runs.
        negative: share of weights below 0 on new sequences, mean of the runs, before training and after.
        off_one: how far the weights of a row sum from 1 after training, mean of all rows and runs.
    """

    worst: float
    best: float
    negative: tuple[float, float]
    off_one: float

    @property
    def learned(self) -> bool:
        """Whether every run learned the task."""
        return self.worst > LEARNED


@functools.cache
def recalled(weighing: str) -> Recalled:
    """Train one layer with Adam, for each vocabulary and seed."""
    import torch

    from softscope.tasks import RecallModel, recall_batch, train

    weigh = WEIGHINGS[weighing]

    class Recall(RecallModel):
        """The recall model with another kind of weights."""

        def weights(self, keys: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
            layer = self.attention
            q, k = layer.w_q(self.key_table(query)), layer.w_k(self.key_table(keys))
            found: torch.Tensor = weigh(q @ k.mT * layer.factor)
            return found

        def forward(self, keys: torch.Tensor, values: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
            layer, weights = self.attention, self.weights(keys, query)
            read: torch.Tensor = self.readout(layer.w_o(weights @ layer.w_v(self.value_table(values))))
            return read

    def run(vocabulary: int, seed: int) -> tuple[float, float, float, float]:
        """Accuracy, share of negative weights before and after, distance of a row's sum from 1."""
        model = Recall(d=D, vocabulary=vocabulary, seed=seed)
        batch = functools.partial(recall_batch, pairs=PAIRS, vocabulary=vocabulary)
        new = batch(64, generator=torch.Generator().manual_seed(1_000 + seed))
        with torch.no_grad():
            before = model.weights(new.keys, new.query)
        history = train(model, lambda g: batch(32, generator=g), steps=STEPS, learning_rate=3e-3, seed=seed)
        with torch.no_grad():
            after = model.weights(new.keys, new.query)
        start, end = ((w < 0.0).double().mean().item() for w in (before, after))
        return history.recent_accuracy(), start, end, (after.double().sum(-1) - 1.0).abs().mean().item()

    first = SEEDS * current_seed()
    with one_thread():  # small tensors: a second thread costs more than it saves
        runs = [run(vocabulary, seed) for vocabulary in VOCABULARIES for seed in range(first, first + SEEDS)]
    accuracies, starts, ends, off_one = zip(*runs, strict=True)
    return Recalled(
        min(accuracies), max(accuracies), (statistics.mean(starts), statistics.mean(ends)), statistics.mean(off_one)
    )


def compared(names: Iterable[str]) -> tuple[dict[str, Recalled], Text]:
    """What came of each kind of weights, and the same as text."""
    found = {name: recalled(name) for name in names}
    shown = ", ".join(f"{name} {x.worst:.2f}–{x.best:.2f}" for name, x in found.items())
    return found, Text(zh=f"{TASK.zh}：{shown}", en=f"{TASK.en}: {shown}")
