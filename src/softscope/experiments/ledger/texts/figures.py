"""Format rows of figures, as the measurements print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def by(numbers: Mapping[Any, Any], spec: str = ".2f", name: str = "d") -> str:
    """One number or estimate per d, or per value of another `name`.

    >>> by({16: 0.75, 64: 0.35})
    'd = 16: 0.75, d = 64: 0.35'
    """
    return ", ".join(f"{name} = {key}: {format(x, spec)}" for key, x in numbers.items())


def listed(figures: Iterable[float], spec: str = ".3g") -> str:
    """The figures in brackets.

    >>> listed([2.0, 2.5], ".2f")
    '[2.00, 2.50]'
    """
    return "[" + ", ".join(format(float(x), spec) for x in figures) + "]"
