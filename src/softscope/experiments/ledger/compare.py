"""Compare a figure with a claim: printed digits, ranges, symbols."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


def near(measured: float | Iterable[float], stated: str | Iterable[str]) -> bool:
    """Check whether the figure, rounded to the printed digits, matches the printed one.

    >>> near(0.3175, "0.326"), near(22.63, "22"), near(2.649e10, "2.6e10"), near([0.38, 0.62], ["0.38", "0.62"])
    (False, False, True, True)
    """
    if isinstance(stated, str):
        # Allow a hair's breadth: some programs print 0.125 as 0.13, others as 0.12.
        return _last_digits_apart(measured, stated) <= 0.5 + 1e-9
    figures: Any = measured
    return all(near(float(x), text) for x, text in zip(figures, stated, strict=True))


def cut(measured: float, stated: str) -> bool:
    """Check whether the figure, truncated to the printed digits, matches the printed one.

    >>> cut(22.63, "22"), cut(-1.38, "-1.3"), cut(23.0, "22")
    (True, True, False)
    """
    return abs(measured) >= abs(float(stated)) and _last_digits_apart(measured, stated) < 1.0


def _last_digits_apart(measured: Any, stated: str) -> float:
    """Return the distance in units of the last printed digit."""
    exponent = decimal.Decimal(stated).as_tuple().exponent
    unit = decimal.Decimal(1).scaleb(int(exponent))
    if not math.isfinite(measured):
        return math.inf
    return float(abs(decimal.Decimal(float(measured)) - decimal.Decimal(stated)) / unit)


def within(measured: float, low: float, high: float) -> bool:
    """Check whether the figure lies in the range.

    >>> within(2.0, 1.0, 3.0), within(math.nan, 0.0, 1.0)
    (True, False)
    """
    return bool(low <= measured <= high)


def equal(a: Any, b: Any) -> bool:
    """Check whether two symbolic expressions or matrices are identical for all values of their symbols."""
    import sympy

    difference = sympy.simplify(sympy.sympify(a) - sympy.sympify(b))
    return bool(difference.is_zero_matrix) if hasattr(difference, "is_zero_matrix") else difference == 0


def half_unit(stated: str) -> float:
    """Return half a unit of the last printed digit, the tolerance that the printed figure implies.

    >>> half_unit("2.1"), half_unit("0.342")
    (0.05, 0.0005)
    """
    return 0.5 * 10.0 ** int(decimal.Decimal(stated).as_tuple().exponent)


def symbols(n: int) -> tuple[Any, Any]:
    """Return real z_1 … z_n and their softmax as sympy columns, the starting point of derivations."""
    import sympy

    z = sympy.Matrix(sympy.symbols(f"z1:{n + 1}", real=True))
    e = z.applyfunc(sympy.exp)
    return z, e / sum(e)


def off_by(a: Any, b: Any) -> float:
    """Return the largest absolute difference between two arrays."""
    return float(np.max(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))))
