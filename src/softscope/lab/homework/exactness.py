"""How exact an answer must be, and how its numbers are read: arrays, lists and plain numbers alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import Text
from softscope.testing.wording import show

if TYPE_CHECKING:
    import numpy.typing as npt

EXACT = 1e-9  # of float64 results: right answers written in different ways differ by 1e-13, wrong ones by far more
SINGLE = 1e-5  # of float32 results
_ALMOST = 1e-5  # an error below this one is one of precision, not of the formula


def as_numbers(raw: Any) -> np.ndarray | None:
    """Return an array of real numbers, or a list or tuple of them, as an array; None if it is something else.

    >>> as_numbers([[1, 2.5], (3, 4)]).shape, as_numbers([[1], [2, 3]]), as_numbers([True])
    ((2, 2), None, None)
    """
    if isinstance(raw, np.ndarray):
        return raw
    if not isinstance(raw, list | tuple) or not _plain(raw):
        return None
    try:
        return np.array(raw, dtype=np.float64)
    except (ValueError, OverflowError):  # rows of different lengths; a number beyond float64
        return None


def _plain(raw: Any) -> bool:
    if isinstance(raw, list | tuple):
        return all(_plain(part) for part in raw)
    return isinstance(raw, np.ndarray) or (isinstance(raw, int | float) and not isinstance(raw, bool))


def tolerance(raw: Any) -> float:
    """Return how far the numbers may be off, relative to max(1, |right|): it follows from their dtype.

    >>> tolerance(np.zeros(2, np.float32)), tolerance([0.5])
    (1e-05, 1e-09)
    """
    return SINGLE if isinstance(raw, np.ndarray | np.generic) and raw.dtype == np.float32 else EXACT


def off(got: npt.NDArray[np.float64], allowed: float, want: Any) -> Text | None:
    """Say what came instead of the right numbers; None if it is close enough.

    Where it is nearly right, the sentence speaks of precision: the numbers as printed would look right.
    """
    want = np.asarray(want, dtype=np.float64)
    if np.array_equal(got, want):
        return None
    with np.errstate(all="ignore"):
        apart = np.abs(got - want) / np.maximum(1.0, np.abs(want))
    error = float(np.max(np.where(got == want, 0.0, apart)))
    if error <= allowed:
        return None
    if error <= _ALMOST:
        return Text(
            zh=f"得到 {show(got)}，误差 {error:.0e}：精度不够，像是用 float32 算的，或有相近的数相减",
            en=f"got {show(got)}, off by {error:.0e}: not precise enough, as if computed in float32, or by subtracting "
            "nearly equal numbers",
        )
    return Text(zh=f"得到 {show(got)}，应当是 {show(want)}", en=f"got {show(got)} instead of {show(want)}")
