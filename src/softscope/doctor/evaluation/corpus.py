"""Texts that every machine has: Python's standard library by character, and sentences made of Python's keywords."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import pathlib
from typing import Literal

import torch
from torch import Tensor

VOCABULARY = 128
FILES = ("argparse", "ast", "collections/__init__", "datetime", "difflib", "inspect", "statistics", "typing")
# What each part takes of every file. The doctor tries heads on a part of its own; the truth is measured on the last.
PARTS = {"all": (0.0, 1.0), "training": (0.0, 0.8), "trial": (0.8, 0.9), "held out": (0.9, 1.0)}

Part = Literal["all", "training", "trial", "held out"]


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
def letters(part: Part = "all") -> Tensor:
    """Some files of the standard library as numbers below 128, concatenated."""
    room = pathlib.Path(dataclasses.__file__).parent
    text = [_numbers((room / f"{name}.py").read_text("utf-8")) for name in FILES]
    first, last = PARTS[part]
    return torch.cat([file[round(first * len(file)) : round(last * len(file))] for file in text])


def text_batch(batch: int, *, length: int, generator: torch.Generator, part: Part = "all") -> TextBatch:
    """`batch` pieces from random positions.

    >>> made = text_batch(2, length=64, generator=torch.Generator().manual_seed(0))
    >>> made.tokens.shape, bool((made.tokens[:, 1:] == made.target[:, :-1]).all())
    (torch.Size([2, 64]), True)
    """
    return _next_letter(_pieces(letters(part), batch, length + 1, generator))


def marked_batch(
    batch: int, *, length: int, marks: int, generator: torch.Generator, part: Part = "all"
) -> tuple[Tensor, Tensor]:
    """`batch` pieces with one letter replaced by one of `marks` marks (tokens from 128 on), and which mark it is.

    >>> pieces, mark = marked_batch(2, length=64, marks=8, generator=torch.Generator().manual_seed(0))
    >>> bool((pieces.max(dim=1).values == VOCABULARY + mark).all())
    True
    """
    pieces = _pieces(letters(part), batch, length, generator)
    mark = torch.randint(marks, (batch,), generator=generator)
    pieces[torch.arange(batch), torch.randint(length, (batch,), generator=generator)] = VOCABULARY + mark
    return pieces, mark


def keyword_batch(batch: int, *, length: int, generator: torch.Generator) -> TextBatch:
    """Random keywords of Python in a row, by letter: to guess the next letter, a model must know the word so far.

    >>> made = keyword_batch(1, length=64, generator=torch.Generator().manual_seed(0))
    >>> set("".join(map(chr, made.tokens[0].tolist())).split()[1:-1]) <= set(keyword.kwlist)
    True
    """
    chosen = torch.randint(len(keyword.kwlist), (batch * length,), generator=generator)
    text = _numbers(" ".join(keyword.kwlist[i] for i in chosen.tolist()))
    return _next_letter(text[: batch * (length + 1)].reshape(batch, length + 1))


def _numbers(text: str) -> Tensor:
    return torch.tensor([min(ord(letter), VOCABULARY - 1) for letter in text])


def _pieces(text: Tensor, batch: int, length: int, generator: torch.Generator) -> Tensor:
    first = torch.randint(len(text) - length + 1, (batch, 1), generator=generator)
    return text[first + torch.arange(length)]


def _next_letter(pieces: Tensor) -> TextBatch:
    return TextBatch(pieces[:, :-1], pieces[:, 1:])
