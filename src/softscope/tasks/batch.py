"""The interface between a task and training: the model's inputs, and the labels for loss and accuracy."""

from typing import Final, Protocol

from torch import Tensor

IGNORED: Final = -100
"""Target of a position that asks for no answer; PyTorch's cross-entropy skips this number."""


class Batch(Protocol):
    """Interface of a training batch: any object with these three properties.

    `model(*batch.inputs)` returns logits of shape (..., classes); the targets have shape (...).

    >>> import torch
    >>> from softscope.tasks import Batch, recall_batch
    >>> made: Batch = recall_batch(2, pairs=4, queries=3, generator=torch.Generator().manual_seed(0))
    >>> [tuple(part.shape) for part in made.inputs], tuple(made.target.shape)
    ([(2, 4), (2, 4), (2, 3)], (2, 3))
    """

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The model's arguments."""

    @property
    def target(self) -> Tensor:
        """The labels for the loss, including noise; `IGNORED` where no answer is asked."""

    @property
    def clean_target(self) -> Tensor:
        """The labels before noise, used for accuracy."""
