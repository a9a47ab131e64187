"""Sparsemax and alpha-entmax for one row: exact fractions for alpha = 2, a certified root for the rest."""

from fractions import Fraction
from typing import Any

from mpmath import mp, mpf

from oracle import rows
from oracle.rows import Number, Row, Visible, exact


def sparsemax(x: Row, temperature: Number = 1, visible: Visible = None) -> list[Fraction]:
    """The projection of x/T onto the simplex (Martins and Astudillo 2016), as exact fractions."""
    see = rows.shown(x, visible)
    t = Fraction(temperature)
    z = [Fraction(v) / t if s else None for v, s in zip(x, see, strict=True)]
    total, tau = Fraction(0), Fraction(0)
    for k, value in enumerate(sorted((v for v in z if v is not None), reverse=True), start=1):
        total += value
        if 1 + k * value <= total:
            break
        tau = (total - 1) / k
    return [max(v - tau, Fraction(0)) if v is not None else Fraction(0) for v in z]


def _powers(below: list[mpf], a: mpf, sigma: mpf) -> list[mpf]:
    """The terms [1 + (alpha - 1)(x - m - sigma)]_+ ^ (1/(alpha - 1)), with a = alpha - 1."""
    bases = [1 + a * (v - sigma) for v in below]
    return [base ** (1 / a) if base > 0 else mpf(0) for base in bases]


def _sigma(below: list[mpf], a: mpf) -> mpf:
    """The sigma at which the terms sum to 1, by Newton's method from the left of a convex decreasing function.

    It is the usual tau in disguise: tau = (alpha - 1)(m + sigma) - 1, but it stays finite as alpha approaches 1.
    """
    sigma, tolerance = mpf(0), mpf(10) ** (8 - mp.dps) / min(abs(a), 1)
    while True:
        p = _powers(below, a, sigma)
        step = (mp.fsum(p) - 1) / mp.fsum(v ** (1 - a) for v in p if v > 0)
        sigma += step
        if abs(step) <= tolerance:
            break
    width = 1000 * tolerance * (1 + sigma)
    left, right = (mp.fsum(_powers(below, a, s)) - 1 for s in (sigma - width, sigma + width))
    if not left > 0 > right:
        raise ArithmeticError(f"no change of sign around sigma = {sigma} at alpha - 1 = {a}")
    return sigma


def _lowest(below: list[mpf], a: mpf) -> tuple[mpf, mpf]:
    """For alpha > 2: the lowest of the support and its weight q; then p^a = q^a + a (x - lowest).

    There the sum of the powers is concave in sigma, and Newton could leave it. An entry belongs to the support if the
    weights above it sum to less than 1 where its own is 0; and in q, the sum is convex.
    """
    lowest = max(below)
    for v in sorted(set(below), reverse=True):
        if mp.fsum((a * (u - v)) ** (1 / a) for u in below if u > v) >= 1:
            break
        lowest = v
    inside = [v for v in below if v >= lowest]
    q, tolerance = mpf(1) / len(inside), mpf(10) ** (8 - mp.dps)
    while True:
        p = _steep(inside, a, lowest, q)
        step = (mp.fsum(p) - 1) / mp.fsum(mp.exp((a - 1) * mp.log(q / v)) for v in p)
        q -= step
        if abs(step) <= tolerance:
            return lowest, q


def _steep(below: list[mpf], a: mpf, lowest: mpf, q: mpf) -> list[mpf]:
    power = mp.exp(a * mp.log(q))
    return [(power + a * (v - lowest)) ** (1 / a) if v > lowest else q * (v == lowest) for v in below]


def _parts(x: Row, alpha: Number, temperature: Number, visible: Visible) -> tuple[mpf, list[mpf], Any]:
    """The maximum m/T, the (x - m)/T of the visible entries, and sigma; for alpha > 2, what `_lowest` finds."""
    m = max(exact(v) for v, s in zip(x, rows.shown(x, visible), strict=True) if s)
    t, a = exact(temperature), exact(alpha) - 1
    below = [(exact(v) - m) / t for v, s in zip(x, rows.shown(x, visible), strict=True) if s]
    return m / t, below, _sigma(below, a) if a <= 1 else _lowest(below, a)


def _digits(alpha: Number) -> int:
    """Enough digits for an exponent of 1/(alpha - 1), which costs twice as many as it has itself."""
    a = abs(exact(alpha) - 1)
    return max(mp.dps, rows.DIGITS + 30) + 2 * int(max(0, -mp.log10(a)))


def entmax(x: Row, alpha: Number, temperature: Number = 1, visible: Visible = None) -> list[mpf]:
    """The weights [(alpha - 1) x/T - tau]_+ ^ (1/(alpha - 1)) that sum to 1; alpha = 1 is softmax."""
    see = rows.shown(x, visible)
    if exact(alpha) == 1 or not any(see):
        return rows.weights(x, temperature, visible)
    with mp.workdps(_digits(alpha)):
        _, below, found = _parts(x, alpha, temperature, visible)
        a = exact(alpha) - 1
        p = iter(_powers(below, a, found) if a <= 1 else _steep(below, a, *found))
        return [next(p) if s else mpf(0) for s in see]


def tau(x: Row, alpha: Number, temperature: Number = 1, visible: Visible = None) -> mpf:
    """The threshold of alpha-entmax, in units of (alpha - 1) x/T."""
    with mp.workdps(_digits(alpha)):
        top, _, found = _parts(x, alpha, temperature, visible)
        a = exact(alpha) - 1
        if a > 1:
            lowest, q = found
            return a * (top + lowest) - mp.exp(a * mp.log(q))
        return a * (top + found) - 1


def jacobian_trace(p: list[mpf], alpha: Number) -> mpf:
    """The trace of diag(s) - s s'/sum s with s = p^(2 - alpha) on the support."""
    s = [v ** (2 - exact(alpha)) for v in p if v > 0]
    return mp.fsum(s) - mp.fsum(v**2 for v in s) / mp.fsum(s)
