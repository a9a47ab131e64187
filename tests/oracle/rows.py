"""Softmax, its logarithm and its normaliser for one row, from the definition, to 50 digits or more."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mpmath import mp, mpf

Number = float | int | mpf
Row = Sequence[Number]
Visible = Sequence[bool] | None

DIGITS = 50
# exp(-800) is below the smallest float64; anything further from the maximum is invisible in a float.
FAR = 800


def exact(value: Number) -> mpf:
    """The number itself, without rounding: every binary float is an mpf."""
    return value if isinstance(value, mpf) else mpf(float(value))


def shown(x: Row, visible: Visible = None) -> list[bool]:
    """Which entries take part: those that the mask shows and that are not -inf."""
    mask = [True] * len(x) if visible is None else visible
    return [bool(see) and value != -math.inf for value, see in zip(x, mask, strict=True)]


@contextmanager
def enough_digits(x: Row, temperature: Number = 1, visible: Visible = None) -> Iterator[None]:
    """Enough digits that 1 minus the largest weight still has 50."""
    seen = sorted({v for v, see in zip(x, shown(x, visible), strict=True) if see})
    gap = (exact(seen[-1]) - exact(seen[-2])) / exact(temperature) if len(seen) > 1 else mpf(0)
    extra = int(min(gap, FAR) / mp.log(10)) + 1
    with mp.workdps(max(mp.dps, DIGITS + extra)):
        yield


def _terms(x: Row, temperature: Number, visible: Visible) -> tuple[mpf, list[mpf]]:
    """The maximum m and the terms exp((x - m)/T), 0 for hidden entries."""
    see = shown(x, visible)
    m = exact(max(v for v, s in zip(x, see, strict=True) if s))
    t = exact(temperature)
    return m, [mp.exp((exact(v) - m) / t) if s else mpf(0) for v, s in zip(x, see, strict=True)]


def weights(x: Row, temperature: Number = 1, visible: Visible = None) -> list[mpf]:
    """The softmax weights exp(x/T) / sum exp(x/T); all 0 if nothing is visible."""
    if not any(shown(x, visible)):
        return [mpf(0)] * len(x)
    with enough_digits(x, temperature, visible):
        _, terms = _terms(x, temperature, visible)
        total = mp.fsum(terms)
        return [term / total for term in terms]


def logsumexp(x: Row, temperature: Number = 1, visible: Visible = None) -> mpf:
    """The logarithm of sum exp(x/T); -inf if nothing is visible."""
    if not any(shown(x, visible)):
        return -mp.inf
    with enough_digits(x, temperature, visible):
        m, terms = _terms(x, temperature, visible)
        return m / exact(temperature) + mp.log(mp.fsum(terms))


def log_weights(x: Row, temperature: Number = 1, visible: Visible = None) -> list[mpf]:
    """The logarithm of the weights, (x - m)/T - log sum exp((x - m)/T); -inf for hidden entries."""
    see = shown(x, visible)
    if not any(see):
        return [-mp.inf] * len(x)
    with enough_digits(x, temperature, visible):
        m, terms = _terms(x, temperature, visible)
        log_total = mp.log(mp.fsum(terms))
        t = exact(temperature)
        return [(exact(v) - m) / t - log_total if s else -mp.inf for v, s in zip(x, see, strict=True)]
