"""Rows of numbers as the reasons print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def row(numbers: Iterable[float], spec: str = ".3f") -> str:
    """Numbers in brackets, each with the same format; estimates too.

    >>> row([0.25, 0.75], ".2f")
    '[0.25, 0.75]'
    """
    return "[" + ", ".join(format(x, spec) for x in numbers) + "]"


def by(numbers: dict[int, float], spec: str = ".2f", name: str = "d") -> str:
    """One number for each d (or what else `name` says).

    >>> by({16: 0.75, 64: 0.35})
    'd = 16: 0.75, d = 64: 0.35'
    """
    return ", ".join(f"{name} = {key}: {format(x, spec)}" for key, x in numbers.items())
