"""The map under test, called so that nothing it does can harm the battery."""

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


class BrokenError(Exception):
    """A property does not hold: which sentence says so, with what values, and the calls that show it."""

    def __init__(self, key: str, given: object, output: object, **values: object) -> None:
        super().__init__(key)
        self.key, self.given, self.output, self.values = key, given, output, values


@dataclass(frozen=True)
class CallResult:
    """What one call gave: the raw result, the weights if there are any, else what is wrong with it."""

    raw: Any
    weights: Weights | None = None
    problem: str = ""
    values: dict[str, object] = field(default_factory=dict)

    @property
    def finite(self) -> bool:
        """Whether there are weights, all of them finite."""
        return self.weights is not None and bool(np.isfinite(self.weights).all())

    @property
    def eps(self) -> float:
        """The eps of the dtype that came back; 0 if that is no float."""
        floats = isinstance(self.raw, np.ndarray) and self.raw.dtype.kind == "f"
        return float(np.finfo(self.raw.dtype).eps) if floats else 0.0


class Probe:
    """Calls f, and knows how exact its answers can be.

    Args:
        f: the map under test.
        dtype: of the logits it gets.
        lipschitz: how steep it may be.
        seed: of the random inputs.
        axis: whether f takes `axis=`.
    """

    def __init__(self, f: Callable[..., Any], dtype: np.dtype[Any], *, lipschitz: float, seed: int, axis: bool) -> None:
        self.f, self.dtype, self.lipschitz, self.seed, self.axis = f, dtype, lipschitz, seed, axis
        # A map may answer in a coarser dtype than it was asked in; it is judged by what it answers in.
        self.eps = max(float(np.finfo(dtype).eps), self.call(self.array(0, 1)).eps)

    @property
    def tolerance(self) -> float:
        """How far apart two weights may be that ought to be equal: 64·eps (1.4e-14, 7.6e-6, 0.06).

        Logits up to about 10 are compared. exp(x) without the maximum taken out loses |x|·eps/2 of each
        weight, the sum as much again, a division by a temperature once more; 64 is twice that and more.
        """
        return 64.0 * self.eps

    def sum_tolerance(self, n: int) -> float:
        """How far the sum of n weights may be from 1: 8·eps·√n.

        n roundings add up like √n; 8 is room for a map that computes in its own dtype. It is no room for
        a term forgotten in the denominator, or an epsilon added to it.
        """
        return 8.0 * self.eps * math.sqrt(n)

    def array(self, *logits: float) -> Array:
        """The logits as an array of the dtype under test."""
        return np.array(logits, dtype=self.dtype)

    def same(self, got: Weights, want: Weights) -> bool:
        """Whether weights that ought to be equal are, up to rounding."""
        return got.shape == want.shape and bool((np.abs(got - want) <= self.tolerance).all())

    def call(self, x: Array, *, given: Array | None = None, **options: Any) -> CallResult:
        """What f gives for x: for a copy of it, so that f can spoil only that, or for the array `given`."""
        given = np.copy(x) if given is None else given
        # The report speaks, so NumPy need not. catch_warnings also undoes what f itself may set.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                raw = self.f(given, **options)
            except (Exception, SystemExit) as error:  # a learner's exit() must not end the report
                return CallResult(error, None, "raised", {"error": foreign(error)})
            return _outcome(raw, x.shape)

    def weights(self, x: Array, *, given: Array | None = None, **options: Any) -> Weights:
        """The weights for x; if there are none, the property that asks is broken."""
        outcome = self.call(x, given=given, **options)
        if outcome.weights is None:
            raise BrokenError(outcome.problem, _shown(x, options), outcome.raw, **outcome.values)
        return outcome.weights

    def finite_weights(self, x: Array) -> Weights:
        """The weights for finite x; if they are not finite, the property that asks is broken."""
        outcome = self.call(x)
        if outcome.weights is None or not outcome.finite:
            raise _unusable(x, outcome)
        return outcome.weights

    def usable(self, inputs: Iterable[Array]) -> Iterator[tuple[Array, Weights]]:
        """Inputs and their weights where f gives finite ones.

        Where it does not, the properties `returns` and `finite` say so, which see the same inputs; saying it
        again for each property would bury the reason. But a property that no input could test does not hold.
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
    """Why an outcome cannot be judged further: no weights at all, or weights that are not finite."""
    if outcome.weights is None:
        return BrokenError(outcome.problem, x, outcome.raw, **outcome.values)
    return BrokenError("not_finite", x, outcome.raw, got=outcome.weights)


def _outcome(raw: Any, shape: tuple[int, ...]) -> CallResult:
    """The result of f, understood as weights if it can be: lists and integers too, `returns` judges those."""
    try:
        array = np.array(raw)
        numbers = array.astype(np.float64) if array.dtype.kind in "fiub" else None
    except Exception:  # whatever a foreign object does when it is asked to be an array
        return CallResult(raw, None, "not_numbers", {"came": foreign(raw)})
    kept = array if isinstance(raw, np.ndarray) else raw
    if numbers is None:
        return CallResult(kept, None, "not_numbers", {"came": foreign(raw)})
    if numbers.shape != shape:
        return CallResult(kept, None, "wrong_shape", {"want": str(shape), "got": str(numbers.shape)})
    return CallResult(kept, numbers)


def _shown(x: Array, options: dict[str, Any]) -> object:
    """The input as the report shows it: with its mask, if it has one."""
    return (x, options["where"]) if "where" in options else x
