"""A text in both languages, side by side so that they cannot drift apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import LANGS, Lang, Text, said, t

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LANGS", "Lang", "Text", "listed", "said", "t"]


def listed(figures: Iterable[float], spec: str = ".3g") -> str:
    """The figures in brackets.

    >>> listed([2.0, 2.5], ".2f")
    '[2.00, 2.50]'
    """
    return "[" + ", ".join(format(float(x), spec) for x in figures) + "]"
