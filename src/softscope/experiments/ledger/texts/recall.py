"""Associative recall with weights other than softmax's: which kinds of weights can learn to look things up."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import softscope as ss

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS, D, STEPS, SEEDS = 16, 64, 250, 3


def _over_sum(x: Any) -> Any:
    return x / x.sum(-1, keepdim=True)


# From scores (..., keys) to weights. Softmax takes the same path as the others, so that the comparison is fair.
WEIGHINGS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: ss.softmax(x),
    "sigmoid": lambda x: x.sigmoid(),
    "sigmoid − ln n": lambda x: (x - math.log(x.shape[-1])).sigmoid(),
    "x/n": lambda x: x / x.shape[-1],
    "x/Σx": _over_sum,
}


@functools.cache
def accuracy(weighing: str) -> float:
    """The lowest accuracy over three seeds after training: 16 pairs, d = 64, one layer, Adam."""
    import torch

    from softscope.tasks import RecallModel, recall_batch, train

    weigh = WEIGHINGS[weighing]

    class Recall(RecallModel):
        """The recall model with another kind of weights."""

        def forward(self, keys: torch.Tensor, values: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
            layer = self.attention
            q, k = layer.w_q(self.key_table(query)), layer.w_k(self.key_table(keys))
            weights = weigh(q @ k.mT * layer.factor)
            read: torch.Tensor = self.readout(layer.w_o(weights @ layer.w_v(self.value_table(values))))
            return read

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small tensors: a second thread costs more than it saves
    try:
        return min(
            train(
                Recall(d=D, vocabulary=PAIRS, seed=seed),
                lambda g: recall_batch(32, pairs=PAIRS, generator=g),
                steps=STEPS,
                learning_rate=3e-3,
                seed=seed,
            ).recent_accuracy()
            for seed in range(SEEDS)
        )
    finally:
        torch.set_num_threads(threads)
