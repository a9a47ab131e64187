"""Whole numbers that people type."""

from __future__ import annotations

_MOST_DIGITS = 18  # what fits in 64 bits, and far below what Python refuses to convert


def natural_number(text: str) -> int | None:
    """Return the number, or None if the text is no whole number of a sensible length.

    `str.isdigit` would not do: it accepts ² and 5,000 digits, and `int` then raises.

    >>> [natural_number(text) for text in (" 12 ", "７", "²", "-1", "9" * 5000)]
    [12, 7, None, None, None]
    """
    text = text.strip()
    return int(text) if text.isdecimal() and len(text.lstrip("0")) <= _MOST_DIGITS and len(text) < 1000 else None
