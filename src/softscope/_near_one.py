"""How a number close to 1 is written, everywhere: so that a reader sees how far from 1 it is."""

from __future__ import annotations

import math


def near_one(x: float) -> str:
    """Write enough decimals to show a number's distance from 1; below a millionth, write the distance itself.

    >>> near_one(0.99997), near_one(1.0005), near_one(1 - 1e-6), near_one(1 - 2e-9), near_one(1 + 3e-8)
    ('0.99997', '1.0005', '0.999999', '1−2e-09', '1+3e-08')
    """
    distance = abs(1.0 - x)
    places = math.ceil(-math.log10(distance) - 1e-9)
    return f"{x:.{places}f}" if places <= 6 else f"1{'−' if x < 1.0 else '+'}{distance:.0e}"
