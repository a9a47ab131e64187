"""Error bounds of the results, each stated once for the documentation and the tests.

`u` is the unit roundoff of the result's dtype: half an ulp of 1 (2⁻²⁴ for float32).
float16 and bfloat16 are computed in float32 or better, so their bounds are those of one final rounding.
"""

from __future__ import annotations

import math

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_LOWEST_EXPONENT = {"float16": -13, "bfloat16": -125, "float32": -125, "float64": -1021}  # of normal numbers


def unit_roundoff(dtype: object) -> float:
    """Return half an ulp of 1 in the given dtype.

    >>> unit_roundoff("float32") == 2.0**-24
    True
    """
    return 2.0 ** -_DIGITS[_name(dtype)]


def ulp(value: float, dtype: object) -> float:
    """Return the distance between neighbouring numbers of the dtype at |value|.

    >>> ulp(1.5, "float32") == 2.0**-23
    True
    """
    name = _name(dtype)
    if not math.isfinite(value):
        return math.inf
    _, exponent = math.frexp(value)
    return math.ldexp(1.0, max(exponent, _LOWEST_EXPONENT[name]) - _DIGITS[name])


def weights(distance: float, temperature: float, dtype: object) -> float:
    """Bound the relative error of a softmax weight whose logit lies `distance` = |x − max| below the largest.

    The bound is u·(5 + |x−m|) at temperature 1 and u·(5 + 3·|x−m|/T) otherwise. It holds for weights down to the
    smallest normal number.

    >>> weights(distance=10.0, temperature=1.0, dtype="float32") == 15 * 2.0**-24
    True
    """
    slope = distance if temperature == 1.0 else 3.0 * distance / temperature
    return unit_roundoff(dtype) * (5.0 + slope)


def logsumexp(result: float, maximum: float, dtype: object) -> float:
    """Bound the absolute error of logsumexp and log_softmax: 2 ulp of the larger of result and maximum.

    `maximum` is the largest tempered logit, max(x)/T.

    >>> logsumexp(result=0.5, maximum=100.0, dtype="float64") == 2 * ulp(100.0, "float64")
    True
    """
    return 2.0 * ulp(max(abs(result), abs(maximum)), dtype)


def logsumexp_in_its_own_width(
    result: float, maximum: float, log_z: float, mean_distance: float, dtype: object
) -> float:
    """Bound the same error where no wider dtype is available, as for float64 tensors; cancellation costs more there.

    The extra error is 2u times the mean distance Σ p·|x − max|/T, for rounding x − max and its division, plus 5u
    times log z, for exp, sum and log1p. It shows only if the maximum is small next to log z or cancels it.

    >>> wide = logsumexp_in_its_own_width(0.0, 0.0, log_z=1.0, mean_distance=3.0, dtype="float64")
    >>> wide - logsumexp(0.0, 0.0, "float64") == 11 * 2.0**-53
    True
    """
    u = unit_roundoff(dtype)
    return logsumexp(result, maximum, dtype) + u * (2.0 * mean_distance + 5.0 * log_z)


def sum_to_one(n: int, dtype: object) -> float:
    """Bound how far the sum of n weights is from 1: 2u·√n.

    >>> sum_to_one(10_000, "float32") == 200 * 2.0**-24
    True
    """
    return 2.0 * unit_roundoff(dtype) * math.sqrt(n)


def readings(dtype: object) -> float:
    """Bound the relative error of entropy, collision, peak and jacobian_trace, even 1e-8 from one-hot.

    Readings are float64 whatever the input, so the input's dtype matters only on devices without float64. The
    promise is nevertheless the same everywhere.

    >>> readings("float32"), readings("float64")
    (1e-05, 1e-12)
    """
    return 1e-12 if _name(dtype) == "float64" else 1e-5


def variance(mean: float, variance: float, dtype: object) -> float:
    """Bound the relative error of the variance; `mean` is the mean of x − max under the weights.

    >>> variance(mean=-3.0, variance=1.0, dtype="float32")
    0.0001
    """
    return readings(dtype) * (1.0 + mean * mean / variance)


def support(dtype: object) -> float:
    """Return the weight (4u) below which a sparse weight may be mistaken for zero, or zero for it.

    >>> support("float32") == 4 * 2.0**-24
    True
    """
    return 4.0 * unit_roundoff(dtype)


def sensitivity(weight: float, alpha: float, dtype: object) -> float:
    """Bound the relative error of s = p^(2−α), of which the Jacobian consists, at a weight p that `entmax` found.

    The weight is right to 4u, and the power magnifies that: the bound is u·(5 + |2−α|·(4/p + 3·|log p|)). Softmax
    (α = 1) has its own, better bound. For α > 2, gradients of tensors start from weights in float64 where the device
    has it, whatever the dtype of x. From float32 weights, s at a weight of 0.01 may be off by 2% at α = 1000.

    >>> sensitivity(weight=0.5, alpha=3.0, dtype="float64") < 2e-15
    True
    """
    growth = abs(2.0 - alpha) * (4.0 / weight + 3.0 * abs(math.log(weight)))
    return unit_roundoff(dtype) * (5.0 + growth)


def moved(step: float, alpha: float) -> float:
    """Bound how far a weight of entmax moves if no logit (over T) moves by more than `step`.

    For α ≤ 2 it is 2·step. For α > 2 a weight leaves 0 with infinite slope, and the bound is only
    (2·(α−1)·step)^(1/(α−1)). So logits that are themselves rounded, as in attention, may cost many digits there, if
    several of them lie next to the threshold: a rounding of 2^-24, from a device that computes in float32, may move a
    weight by 0.0005 at α = 3 and by 0.2 at α = 10; one of 2^-53 by 2e-8 and by 0.02.

    >>> moved(1e-9, alpha=1.5), round(moved(1e-9, alpha=5.0), 6)
    (2e-09, 0.009457)
    """
    beta = alpha - 1.0
    return 2.0 * step if beta <= 1.0 else (2.0 * beta * step) ** (1.0 / beta)


def _name(dtype: object) -> str:
    """Return 'float32' for 'float32', numpy.float32, numpy.dtype('float32') or torch.float32."""
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return str(name).rpartition(".")[2]
