"""Format numbers: short, and never rounded into something false (a weight of 0.99999 is not 1)."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING

from softscope._near_one import near_one

if TYPE_CHECKING:
    from collections.abc import Sequence

UNDEFINED = "–"


def number(x: float) -> str:
    """Format with at most six digits.

    >>> number(2.0), number(2.2 - 2.1), number(-1e300), number(math.nan)
    ('2', '0.1', '-1e+300', '–')
    """
    return UNDEFINED if math.isnan(x) else f"{x:.6g}"


def decimals(xs: Sequence[float]) -> list[str]:
    """Format a column of numbers with as many decimals as they need, at most four.

    >>> decimals([2.0, 2.25, -10.0]), decimals([1e9, 0.5]), decimals([3.0, 4.0])
    (['2.00', '2.25', '-10.00'], ['1e+09', '0.5'], ['3', '4'])
    """
    if all(abs(x) < 1e6 and (x == 0.0 or abs(x) >= 1e-3) for x in xs):
        places = max((len(f"{x:.4f}".rstrip("0").partition(".")[2]) for x in xs), default=0)
        return [f"{x:.{places}f}" for x in xs]
    return [number(x) for x in xs]


def weight(x: float) -> str:
    """Format a weight or slope with four decimals; 0 and 1 mean exactly 0 and 1.

    >>> weight(0.26934), weight(0.0), weight(1.0), weight(3.7e-44), weight(0.99997), weight(1 - 1e-9), weight(-250.0)
    ('0.2693', '0', '1', '3.7e-44', '0.99997', '1−1e-09', '-250')
    """
    if math.isnan(x):
        return UNDEFINED
    if x == 0.0 or x == 1.0:
        return f"{x:.0f}"
    if abs(x) < 0.00005:
        return f"{x:.1e}"
    if abs(x) >= 10.0:
        return f"{x:.5g}"
    text = f"{x:.4f}"
    return near_one(x) if text == "1.0000" and x < 1.0 else text


def percent(x: float) -> str:
    """Format a share in percent; below a millionth, where percent are useless, show the share itself.

    >>> percent(0.36717), percent(0.5), percent(0.999996), percent(0.00031), percent(1e-40), percent(1.0)
    ('36.7%', '50%', '99.9996%', '0.031%', '1.0e-40', '100%')
    """
    if math.isnan(x):
        return UNDEFINED
    if 0.0 < abs(x) < 1e-6:
        return f"{x:.1e}"
    share = 100.0 * x
    if x == 0.0 or 0.1 <= abs(share) <= 99.9 or abs(share) >= 100.0:
        return f"{share:.1f}".removesuffix(".0") + "%" if abs(share) < 1e5 else f"{share:.3g}%"
    if abs(share) < 0.1:
        return f"{share:.2g}%"
    return f"{share:.{min(12, 1 - math.floor(math.log10(100.0 - abs(share))))}f}".rstrip("0") + "%"


def difference(a: float, b: float) -> str:
    """Format a − b with four digits, even if it overflows a float.

    >>> difference(2.2, 2.1), difference(1e308, -1e308)
    ('0.1', '2.000e+308')
    """
    return f"{a - b:.4g}" if math.isfinite(a - b) else f"{decimal.Decimal(a) - decimal.Decimal(b):.3e}"


def different(a: float, b: float, percents: bool = False) -> tuple[str, str]:
    """Format both numbers with enough digits to tell them apart.

    >>> different(2.299, 2.774), different(2.9991, 2.9993), different(0.36717, 0.40174, percents=True)
    (('2.30', '2.77'), ('2.9991', '2.9993'), ('36.7%', '40.2%'))
    """
    if percents:
        shares = percent(a), percent(b)
        if a == b or shares[0] != shares[1]:
            return shares
        left, right = different(100.0 * a, 100.0 * b)
        return left + "%", right + "%"
    texts = number(a), number(b)
    for digits in range(3, 13):
        texts = f"{a:#.{digits}g}".rstrip("."), f"{b:#.{digits}g}".rstrip(".")
        if a == b or texts[0] != texts[1]:
            break
    return texts
