"""Calls as Python text: every number in full, every head listed, so that running the text does the same."""

from __future__ import annotations

from typing import Any

WIDTH = 100


def call(name: str, *given: Any, **named: Any) -> str:
    """The text of a call on `model`; None and empty arguments are left out, long ones go on lines of their own.

    >>> call("remedies.temperature", {"attention": {0: 16.0}})
    "remedies.temperature(model, {'attention': {0: 16.0}})"
    >>> print(call("remedies.sink", [f"layers.{i}" for i in range(8)]))
    remedies.sink(
        model,
        ['layers.0', 'layers.1', 'layers.2', 'layers.3', 'layers.4', 'layers.5', 'layers.6', 'layers.7'],
    )
    """
    arguments = [_plain(x) for x in given if not _nothing(x)]
    arguments += [f"{key}={_plain(value)}" for key, value in named.items() if not _nothing(value)]
    line = f"{name}({', '.join(['model', *arguments])})"
    if len(line) <= WIDTH:
        return line
    inside = "".join(f"    {argument},\n" for argument in ["model", *arguments])
    return f"{name}(\n{inside})"


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list | tuple) and not value)


def _plain(value: Any) -> str:
    """`repr`, with a line for each site of a long dictionary."""
    text = repr(value)
    if isinstance(value, dict) and len(text) > WIDTH - 20:
        inside = "".join(f"        {key!r}: {entry!r},\n" for key, entry in value.items())
        return f"{{\n{inside}    }}"
    return text


def round_up(dose: float, digits: int = 3) -> float:
    """The next number above with three digits: doses are read by people, and too small a dose may do nothing.

    >>> round_up(358.71), round_up(0.123456), round_up(16.0)
    (359.0, 0.124, 16.0)
    """
    import decimal
    import math

    if not math.isfinite(dose) or dose <= 0:
        return dose
    number = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING).create_decimal(repr(dose))
    return float(number)
