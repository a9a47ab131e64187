"""A text corpus that every machine has: Python's standard library, by character, for small language models."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import torch
from torch import Tensor

VOCABULARY = 128
FILES = ("argparse", "ast", "collections/__init__", "datetime", "difflib", "inspect", "statistics", "typing")


@dataclasses.dataclass(frozen=True, eq=False)
class TextBatch:
    """Pieces of text: tokens, and the next token for each; (batch, length)."""

    tokens: Tensor
    target: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The arguments of `SmallTransformer`: tokens."""
        return (self.tokens,)

    @property
    def clean_target(self) -> Tensor:
        """The same as `target`."""
        return self.target


@functools.cache
def letters() -> Tensor:
    """Some files of the standard library as numbers below 128, concatenated."""
    room = pathlib.Path(dataclasses.__file__).parent
    text = "".join((room / f"{name}.py").read_text("utf-8") for name in FILES)
    return torch.tensor([min(ord(letter), VOCABULARY - 1) for letter in text])


def text_batch(batch: int, *, length: int, generator: torch.Generator) -> TextBatch:
    """`batch` pieces from random positions.

    >>> made = text_batch(2, length=64, generator=torch.Generator().manual_seed(0))
    >>> made.tokens.shape, bool((made.tokens[:, 1:] == made.target[:, :-1]).all())
    (torch.Size([2, 64]), True)
    """
    text = letters()
    first = torch.randint(len(text) - length, (batch, 1), generator=generator)
    pieces = text[first + torch.arange(length + 1)]
    return TextBatch(pieces[:, :-1], pieces[:, 1:])
