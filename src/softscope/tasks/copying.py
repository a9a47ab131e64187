"""Copying task: read a sequence and a delimiter, then repeat the sequence token by token."""

from dataclasses import dataclass

import torch
from torch import Tensor

from softscope._arguments.checks import whole_number
from softscope.tasks._checks import a_generator
from softscope.tasks.batch import IGNORED


@dataclass(frozen=True, eq=False)
class CopyBatch:
    """One batch of the copying task.

    Attributes:
        tokens: The sequence, the delimiter, and the sequence without its last token, (batch, 2·length).
        target: The next token, (batch, 2·length); `IGNORED` before the delimiter.

    Examples:
        >>> import torch
        >>> made = copy_batch(1, length=3, generator=torch.Generator().manual_seed(0))
        >>> (made.target[0] == IGNORED).tolist()
        [True, True, True, False, False, False]
    """

    tokens: Tensor
    target: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The arguments for `SmallTransformer`: tokens."""
        return (self.tokens,)

    @property
    def clean_target(self) -> Tensor:
        """The same as `target`: this task has no noise."""
        return self.target


def copy_batch(batch: int, *, length: int = 16, vocabulary: int = 16, generator: torch.Generator) -> CopyBatch:
    """Make a batch of sequences `x` for a causal model with `vocabulary + 1` tokens to copy.

        tokens = x_0 … x_(length−1) · delimiter · x_0 … x_(length−2)
        target =     nothing asked  · x_0       · x_1 … x_(length−1)

    Args:
        batch: Number of sequences.
        length: Number of tokens to copy; the model reads `2·length`.
        vocabulary: Number of different tokens in the sequences; the delimiter is token `vocabulary`.
        generator: The only source of randomness; the tensors are created on its device.

    Examples:
        >>> import torch
        >>> made = copy_batch(1, length=3, vocabulary=8, generator=torch.Generator().manual_seed(0))
        >>> made.tokens.shape, int(made.tokens[0, 3])
        (torch.Size([1, 6]), 8)
        >>> bool((made.target[:, 3:] == made.tokens[:, :3]).all())
        True
    """
    batch, length = whole_number(batch, "batch", 1), whole_number(length, "length", 1)
    vocabulary = whole_number(vocabulary, "vocabulary", 1)
    device = a_generator(generator).device
    sequence = torch.randint(vocabulary, (batch, length), generator=generator, device=device)
    delimiter = torch.full_like(sequence[:, :1], vocabulary)
    nothing = torch.full_like(sequence, IGNORED)
    return CopyBatch(
        tokens=torch.cat((sequence, delimiter, sequence[:, :-1]), dim=1),
        target=torch.cat((nothing, sequence), dim=1),
    )
