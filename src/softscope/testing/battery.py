"""The test battery: one call reports which properties a map from logits to weights keeps or breaks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softscope._text import LANGS, Lang
from softscope.testing import axes, behaviour, edges, steps, values
from softscope.testing.probe import LARGEST, BrokenError, Probe
from softscope.testing.report import Report, Result, Status
from softscope.testing.wording import say, title

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

# In the order of PROPERTIES; each function has its property's name.
_TESTS: tuple[Callable[[Probe], None], ...] = (
    values.returns,
    values.finite,
    values.non_negative,
    values.sums_to_one,
    values.order,
    behaviour.shift,
    behaviour.permutation,
    steps.continuity,
    behaviour.sharpens,
    behaviour.responds,
    edges.minus_infinity,
    edges.all_minus_infinity,
    edges.nan,
    edges.empty,
    edges.input_unchanged,
    edges.integers,
    axes.axis,
    axes.where,
    steps.smooth,
)
_INFORMATIVE = ("smooth",)


def check_simplex_map(
    f: Callable[..., Any],
    *,
    axis: bool = False,
    where: bool = False,
    dtype: npt.DTypeLike = np.float64,
    lipschitz: float = 16.0,
    seed: int = 0,
    lang: Lang = "en",
) -> Report:
    """Test a map from logits to weights against every property, and report each violation with an input that shows it.

    A map of the softmax family takes any real logits to weights p ≥ 0 with Σp = 1, keeps their order,
    ignores a common shift, follows a reordering, has no jumps, and sharpens as the logits grow.
    `softscope.testing.PROPERTIES` names all properties; "smooth" is only informative, since sparsemax has kinks.

    Whatever f does (raise, return None, overwrite its input) becomes a sentence in the report. The battery cannot
    catch an endless loop.

    Args:
        f: Function of one 1-D NumPy array of logits.
        axis: Test that f also takes `axis=` (an int, for arrays with more dimensions).
        where: Test that f also takes `where=` (boolean, True = takes part).
        dtype: Dtype of the logits: float16, float32 or float64. Tolerances follow the coarser of this dtype and that
            of f's results.
        lipschitz: The weights may move by at most this many times the step of the logits. The softmax family keeps
            1/temperature. The default allows temperatures down to 1/16 and still detects a jump in every dtype.
        seed: Seed of the random inputs that follow the simple ones.
        lang: Language of the sentences, "en" or "zh".

    Returns:
        A `Report`: `passed`, `broken`, `results`, `raise_if_broken()`; `str(report)` reads as text.

    Example:
        >>> import numpy as np
        >>> from softscope.testing import check_simplex_map
        >>> def naive(x):
        ...     return np.exp(x) / np.exp(x).sum()
        >>> report = check_simplex_map(naive)
        >>> report.passed, [result.property for result in report.broken]
        (False, ['finite'])
        >>> report["finite"].input.tolist()
        [1000.0, 1001.0, 1002.0]
        >>> print(check_simplex_map(lambda x: x / x.sum())["shift"].sentence)
        Adding one number to all logits must not change the weights, but adding 1 turns [0, 1] into
        [0.333333, 0.666667].
    """
    if lang not in LANGS:
        raise ValueError(f"lang must be one of {', '.join(LANGS)}, but got {lang!r}; pass one of these")
    probe = Probe(f, _real(dtype), lipschitz=_positive(lipschitz), seed=seed, axis=axis)
    untested: dict[str, tuple[str, dict[str, Any]]] = {}
    if not axis:
        untested["axis"] = ("undeclared", {"option": "axis"})
    if not where:
        untested["where"] = ("undeclared", {"option": "where"})
    if probe.eps > np.finfo(np.float64).eps:
        untested["smooth"] = ("smooth.coarse", {})
    return Report(tuple(_result(probe, test, lang, untested.get(test.__name__)) for test in _TESTS), lang)


def breaks(
    f: Callable[..., Any],
    *,
    seed: int = 0,
    lang: Lang = "en",
    but: Collection[str] = (),
    eps: float = 0.0,
    largest: float = LARGEST,
) -> Iterator[Result]:
    """Yield the broken properties that count, one by one, for callers who stop after the first few.

    Args:
        f: see `check_simplex_map`.
        seed: see `check_simplex_map`.
        lang: see `check_simplex_map`.
        but: properties that are not asked.
        eps: the precision asked, if it is less than that of the dtype.
        largest: the size of the largest logits.
    """
    probe = Probe(f, np.dtype(np.float64), lipschitz=16.0, seed=seed, axis=False, eps=eps, largest=largest)
    for test in _TESTS:
        if test.__name__ not in (*_INFORMATIVE, "axis", "where", *but):
            result = _result(probe, test, lang, None)
            if result.status == "broken":
                yield result


def _result(
    probe: Probe, test: Callable[[Probe], None], lang: Lang, untested: tuple[str, dict[str, Any]] | None
) -> Result:
    """Run one test unless it is undeclared, and put the finding into words."""
    name = test.__name__
    status: Status = "held"
    key: str = "held"
    filled: dict[str, Any] = {}
    shown: tuple[Any, Any] = (None, None)
    if untested is not None:
        status, (key, filled) = "not declared", untested
    else:
        try:
            test(probe)
        except BrokenError as broken:
            status, key, filled, shown = "broken", broken.key, broken.values, (broken.given, broken.output)
    return Result(
        name, title(name, lang), status, say(key, name, lang, filled), *shown, counts=name not in _INFORMATIVE
    )


def _real(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype if the tolerances support it."""
    names = ("float16", "float32", "float64")
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result is None or result.name not in names:
        raise TypeError(f"dtype must be one of {', '.join(names)}, but got {dtype!r}; pass one of these")
    return result


def _positive(lipschitz: float) -> float:
    """Return the bound if it is positive and finite, so that a jump can exceed it."""
    if not (lipschitz > 0.0 and math.isfinite(lipschitz)):
        raise ValueError(f"lipschitz must be a finite number > 0, but got {lipschitz!r}; pass 1 / temperature")
    return float(lipschitz)
