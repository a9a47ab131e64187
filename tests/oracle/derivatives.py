"""Derivatives of any oracle by central differences at high precision, good to about 35 digits."""

from collections.abc import Callable, Sequence

from mpmath import mp, mpf

from oracle.rows import Number, exact

Map = Callable[[list[mpf]], Sequence[mpf]]
STEP = mpf(2) ** -66


def derivative(f: Callable[[mpf], mpf], at: Number, digits: int = 120) -> mpf:
    """The derivative of a function of one number."""
    with mp.workdps(digits):
        return (f(exact(at) + STEP) - f(exact(at) - STEP)) / (2 * STEP)


def gradient(f: Callable[[list[mpf]], mpf], x: Sequence[Number], digits: int = 120) -> list[mpf]:
    """The gradient of a number that depends on a row; 0 for entries of -inf."""
    return [row[0] for row in _columns(lambda values: [f(values)], x, digits)]


def jacobian(f: Map, x: Sequence[Number], digits: int = 120) -> list[list[mpf]]:
    """The matrix d f_i / d x_j; 0 for entries of -inf."""
    columns = _columns(f, x, digits)
    return [[column[i] for column in columns] for i in range(len(columns[0]))]


def _columns(f: Map, x: Sequence[Number], digits: int) -> list[list[mpf]]:
    with mp.workdps(digits):
        start = [exact(v) for v in x]
        width = len(f(start))
        columns = []
        for j, value in enumerate(start):
            if not mp.isfinite(value):
                columns.append([mpf(0)] * width)
                continue
            up, down = list(start), list(start)
            up[j], down[j] = value + STEP, value - STEP
            columns.append([(a - b) / (2 * STEP) for a, b in zip(f(up), f(down), strict=True)])
        return columns
