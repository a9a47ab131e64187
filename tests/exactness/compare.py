"""A single way to compare: a failure prints the input, got, wanted, the error and the tolerance."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

import numpy as np
from mpmath import mp, mpf

SHOWN = 5


def number(value: object) -> mpf:
    """A float of any width, an mpf or a fraction, as an mpf."""
    if isinstance(value, mpf):
        return value
    if hasattr(value, "numerator") and not isinstance(value, float):
        return mpf(int(value.numerator)) / mpf(int(value.denominator))
    if isinstance(value, np.longdouble) and np.isfinite(value):
        top, bottom = value.as_integer_ratio()
        return mpf(int(top)) / mpf(int(bottom))
    return mpf(float(value))


class Comparison:
    """Collect everything out of tolerance and, on leaving the `with` block, fail with the worst case."""

    def __init__(self) -> None:
        self.checked = 0
        self.violations: list[tuple[mpf, str]] = []

    def __enter__(self) -> Self:
        self.digits = mp.workdps(60)
        self.digits.__enter__()
        return self

    def check(
        self,
        what: str,
        given: object,
        got: object,
        wanted: object,
        tolerance: object,
        *,
        floor: object = 0,
        largest: object = mp.inf,
    ) -> None:
        """Check that |got - wanted| is within an absolute tolerance.

        Args:
            floor: below this magnitude the result only has to stay below it, too (the smallest normal number).
            largest: above this magnitude infinity is the right answer (the largest finite number).
        """
        self.checked += 1
        g, w, t = number(got), number(wanted), number(tolerance)
        if abs(g - w) <= t:
            return
        if abs(w) < floor:
            t = max(t, number(floor) - abs(w))
        if mp.isnan(w) or mp.isinf(w) or abs(w) > largest:
            right = mp.isnan(g) if mp.isnan(w) else g == mp.sign(w) * mp.inf
            if abs(w) > largest and not right:
                right = abs(g - w) <= t
            error = mpf(0) if right else mp.inf
        else:
            error = abs(g - w) if mp.isfinite(g) else mp.inf
            right = error <= t
        if not right:
            self.violations.append((error / t if t else mp.inf, _story(what, given, g, w, error, t)))

    def relative(
        self, what: str, given: object, got: object, wanted: object, tolerance: object, **limits: object
    ) -> None:
        """Check the error against a tolerance relative to the wanted value."""
        # Where x - m overflows, the bound is inf. Cap it at the whole value, or even NaN would be within bounds.
        w = number(wanted)
        share = min(number(tolerance), mpf(1))
        self.check(what, given, got, w, share * abs(w) if mp.isfinite(w) else share, **limits)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.digits.__exit__(kind, error, trace)
        if kind is not None:
            return
        assert self.checked, "nothing was compared"
        worst = sorted(self.violations, key=lambda violation: violation[0], reverse=True)[:SHOWN]
        stories = "\n".join(story for _, story in worst)
        assert not worst, f"{len(self.violations)} of {self.checked} out of tolerance, the worst:\n{stories}"


def _story(what: str, given: object, got: mpf, wanted: mpf, error: mpf, tolerance: mpf) -> str:
    return (
        f"{what}\n  input     {_short(given)}\n"
        f"  got       {mp.nstr(got, 20)}\n  wanted    {mp.nstr(wanted, 20)}\n"
        f"  error     {mp.nstr(error, 5)}\n  tolerance {mp.nstr(tolerance, 5)}"
    )


def _short(given: object) -> str:
    if isinstance(given, Iterable) and not isinstance(given, str):
        values = [repr(v) for v in given]
        return f"[{', '.join(values[:16])}{', …' if len(values) > 16 else ''}] (length {len(values)})"
    return repr(given)
