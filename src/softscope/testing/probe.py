"""Calls the map under test so that nothing it does can harm the battery."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softscope.testing.wording import foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Array = npt.NDArray[Any]
Weights = npt.NDArray[np.float64]


LARGEST = 1e30


class BrokenError(Exception):
    """Raised if a property does not hold; it carries the sentence's key and values, and the calls that show it."""

    def __init__(self, key: str, given: object, output: object, **values: object) -> None:
        super().__init__(key)
        self.key, self.given, self.output, self.values = key, given, output, values


@dataclass(frozen=True)
class CallResult:
    """The result of one call: the raw result, and the weights or else the reason there are none."""

    raw: Any
    weights: Weights | None = None
    problem: str = ""
    values: dict[str, object] = field(default_factory=dict)

    @property
    def finite(self) -> bool:
        """Whether there are weights and all are finite."""
        return self.weights is not None and bool(np.isfinite(self.weights).all())

    @property
    def eps(self) -> float:
        """The eps of the result's dtype; 0 if it is not a float."""
        floats = isinstance(self.raw, np.ndarray) and self.raw.dtype.kind == "f"
        return float(np.finfo(self.raw.dtype).eps) if floats else 0.0


class Probe:
    """Calls f, and tracks how exact its results can be.

    Args:
        f: The map under test.
        dtype: Dtype of the logits passed to f.
        lipschitz: How steep f may be.
        seed: Seed of the random inputs.
        axis: Whether f takes `axis=`.
        eps: How exact the results are asked to be, if that is less than the dtypes allow.
        largest: The size of the largest logits, if the dtype can hold twice that.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        dtype: np.dtype[Any],
        *,
        lipschitz: float,
        seed: int,
        axis: bool,
        eps: float = 0.0,
        largest: float = LARGEST,
    ) -> None:
        self.f, self.dtype, self.lipschitz, self.seed, self.axis = f, dtype, lipschitz, seed, axis
        self.largest = min(largest, float(np.finfo(dtype).max) / 2.0)
        # A map may return a coarser dtype than its input; judge it by the dtype it returns.
        self.eps = max(float(np.finfo(dtype).eps), self.call(self.array(0, 1)).eps, eps)

    @property
    def tolerance(self) -> float:
        """Allowed difference between two weights that should be equal: 64·eps (1.4e-14, 7.6e-6, 0.06).

        The battery compares logits up to about 10. exp(x) without subtracting the maximum loses |x|·eps/2 of each
        weight; the sum loses as much again, and so does dividing by a temperature. 64 is more than twice the total.
        """
        return 64.0 * self.eps

    def sum_tolerance(self, n: int) -> float:
        """Return how far the sum of n weights may be from 1: 8·eps·√n.

        n roundings add up like √n. The factor 8 leaves room for a map that computes in its own dtype, but not for a
        term missing from the denominator or an epsilon added to it.
        """
        return 8.0 * self.eps * math.sqrt(n)

    def array(self, *logits: float) -> Array:
        """Return the logits as an array of the dtype under test."""
        return np.array(logits, dtype=self.dtype)

    def same(self, got: Weights, want: Weights) -> bool:
        """Tell whether weights that should be equal are equal up to rounding."""
        return got.shape == want.shape and bool((np.abs(got - want) <= self.tolerance).all())

    def call(self, x: Array, *, given: Array | None = None, **options: Any) -> CallResult:
        """Call f on a copy of x, so that f can overwrite only the copy, or on the array `given`."""
        given = np.copy(x) if given is None else given
        # The report speaks for itself, so silence NumPy. catch_warnings also undoes any filters that f sets.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                raw = self.f(given, **options)
            except (Exception, SystemExit) as error:  # a learner's exit() must not end the battery
                return CallResult(error, None, "raised", {"error": foreign(error)})
            return _outcome(raw, x.shape)

    def weights(self, x: Array, *, given: Array | None = None, **options: Any) -> Weights:
        """Return the weights for x; without weights, the calling property is broken."""
        outcome = self.call(x, given=given, **options)
        if outcome.weights is None:
            raise BrokenError(outcome.problem, _shown(x, options), outcome.raw, **outcome.values)
        return outcome.weights

    def finite_weights(self, x: Array) -> Weights:
        """Return the weights for finite x; if they are not finite, the calling property is broken."""
        outcome = self.call(x)
        if outcome.weights is None or not outcome.finite:
            raise _unusable(x, outcome)
        return outcome.weights

    def usable(self, inputs: Iterable[Array]) -> Iterator[tuple[Array, Weights]]:
        """Yield the inputs for which f returns finite weights, with those weights.

        For the other inputs, the properties `returns` and `finite` report the failure, since they see the same inputs;
        repeating it for each property would bury the reason. But a property that no input could test does not hold.
        """
        seen = False
        failure: BrokenError | None = None
        for x in inputs:
            outcome = self.call(x)
            if outcome.weights is not None and outcome.finite:
                seen = True
                yield x, outcome.weights
            elif failure is None:
                failure = _unusable(x, outcome)
        if failure is not None and not seen:
            raise failure


def _unusable(x: Array, outcome: CallResult) -> BrokenError:
    """Explain why an outcome cannot be judged further: no weights, or weights that are not finite."""
    if outcome.weights is None:
        return BrokenError(outcome.problem, x, outcome.raw, **outcome.values)
    return BrokenError("not_finite", x, outcome.raw, got=outcome.weights)


def _outcome(raw: Any, shape: tuple[int, ...]) -> CallResult:
    """Interpret f's result as weights if possible, including lists and integers, which `returns` judges."""
    try:
        array = np.array(raw)
        numbers = array.astype(np.float64) if array.dtype.kind in "fiub" else None
    except Exception:  # a foreign object may raise anything on conversion to an array
        return CallResult(raw, None, "not_numbers", {"came": foreign(raw)})
    kept = array if isinstance(raw, np.ndarray) else raw
    if numbers is None:
        return CallResult(kept, None, "not_numbers", {"came": foreign(raw)})
    if numbers.shape != shape:
        return CallResult(kept, None, "wrong_shape", {"want": str(shape), "got": str(numbers.shape)})
    return CallResult(kept, numbers)


def _shown(x: Array, options: dict[str, Any]) -> object:
    """Return the input as the report shows it, with its mask if there is one."""
    return (x, options["where"]) if "where" in options else x
