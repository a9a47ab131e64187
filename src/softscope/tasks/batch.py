"""What a task hands to training: the model's inputs, and the answers it is taught and judged by."""

from typing import Final, Protocol

from torch import Tensor

IGNORED: Final = -100
"""The target of a position that asks for no answer; the number that PyTorch's cross-entropy skips."""


class Batch(Protocol):
    """Anything with these three properties can be trained on: `model(*batch.inputs)` gives the logits.

    The model answers with logits of shape (..., classes); the targets have shape (...).

    >>> import torch
    >>> from softscope.tasks import Batch, recall_batch
    >>> made: Batch = recall_batch(2, pairs=4, queries=3, generator=torch.Generator().manual_seed(0))
    >>> [tuple(part.shape) for part in made.inputs], tuple(made.target.shape)
    ([(2, 4), (2, 4), (2, 3)], (2, 3))
    """

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model is called with."""

    @property
    def target(self) -> Tensor:
        """The labels the loss sees, noise included; `IGNORED` where nothing is asked."""

    @property
    def clean_target(self) -> Tensor:
        """The labels before noise: accuracy is counted against these."""
