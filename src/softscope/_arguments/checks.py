"""Checks of arguments that many functions share; each error names the argument, the rule, the value and the fix."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._arguments.arrays import Array, beside, dtype_name, is_tensor, namespace
from softscope._arguments.seen import seen

if TYPE_CHECKING:
    from softscope._arguments.axes import Rows

LARGEST = 1 << 60  # of the whole numbers we take: sums of a few still fit an int64
_ALPHAS = "a finite number >= 1"
_SOME_ALPHAS = "1 is softmax, 1.5 entmax, 2 sparsemax"


def is_number(value: object) -> bool:
    """Tell whether the value is a Python or NumPy real number; booleans and arrays are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def number(value: object, name: str, rule: str = "a real number") -> float:
    """Return a finite or infinite number as a float; refuse anything else, including NaN."""
    if not is_number(value):
        raise TypeError(f"{name} must be {rule}, but got {short(value)}; pass a number")
    try:
        result = float(value)  # type: ignore[arg-type]
    except OverflowError:  # a larger integer than floats hold
        result = math.inf if value > 0 else -math.inf  # type: ignore[operator]
    if result != result:  # NaN; math.isnan would break torch.compile's graph once a number changes between calls
        raise ValueError(f"{name} must be {rule}, but got nan; pass a number")
    return result


def plain_number(value: object) -> float:
    """Return a float or an int as a float, and NaN for anything that deserves a closer look: the quick ways' check."""
    if type(value) is float:
        return value
    return float(value) if type(value) is int and -LARGEST <= value <= LARGEST else math.nan


def positive(value: object, name: str, fix: str, *, rule: str = "a positive number") -> float:
    """Return the value as a float if it is finite and above 0."""
    result = number(value, name, rule)
    if not 0 < result < math.inf:
        raise ValueError(f"{name} must be {rule}, but got {short(value)}; {fix}")
    return result


def between(value: object, name: str, low: float, high: float, fix: str) -> float:
    """Return the value as a float if it lies in [low, high]."""
    result = number(value, name, f"a number in [{low}, {high}]")
    if not low <= result <= high:
        raise ValueError(f"{name} must lie in [{low}, {high}], but got {short(value)}; {fix}")
    return result


def temperature_for_rows(value: object, x: Array, rows: Rows) -> Any:
    """Return the temperature as a positive float, or as a float64 array (…, 1) of x's kind."""
    if is_number(value):
        result = number(value, "temperature", "a number > 0")
        if result <= 0.0:
            raise ValueError(f"temperature must be > 0, but got {value}; pass a positive number")
        return result
    array = real_beside(value, x, "temperature")
    if seen(array) and bool((array <= 0.0).any()):
        low = _first(array, array <= 0.0)
        raise ValueError(f"temperature must be > 0 everywhere, but holds {low}; pass positive numbers")
    if array.ndim == 0 and not is_tensor(array):
        return temperature_for_rows(float(array), x, rows)
    return rows.bring_kept(array, "temperature")


def alpha_for_rows(value: object, x: Array, rows: Rows) -> Any:
    """Return alpha as a finite float ≥ 1, or as an array (…, 1) of x's kind."""
    if is_number(value):
        return alpha_number(value)
    return rows.bring_kept(alphas(real_beside(value, x, "alpha")), "alpha")


def alphas(array: Array) -> Array:
    """Return an array of alphas if all of them are finite and ≥ 1."""
    if seen(array):
        wrong = ~((array >= 1.0) & (array < math.inf))
        if bool(wrong.any()):
            raise ValueError(f"alpha must be {_ALPHAS} everywhere, but holds {_first(array, wrong)}; {_SOME_ALPHAS}")
    return array


def alpha_number(value: object) -> float:
    """Return alpha as a finite float ≥ 1."""
    result = number(value, "alpha", _ALPHAS)
    if not 1.0 <= result < math.inf:
        raise ValueError(f"alpha must be {_ALPHAS}, but got {short(value)}; {_SOME_ALPHAS}")
    return result


def real_beside(value: object, x: Array, name: str) -> Array:
    """Convert real numbers of any floating or integer dtype to x's kind of array."""
    array = beside(value, x, name)
    kind = dtype_name(array)
    if not kind.startswith(("float16", "float32", "float64", "bfloat16", "int", "uint")):
        raise TypeError(f"{name} must be real numbers, but its dtype is {kind}; convert it")
    if is_tensor(array):
        return array if array.is_floating_point() else array.to(namespace(x).get_default_dtype())
    return array.astype(np.float64)


def visible_for_rows(where: object, x: Array, rows: Rows) -> Array | None:
    """Return `where` as a boolean array (…, n), or None."""
    if where is None:
        return None
    array = beside(where, x, "where")
    if dtype_name(array) != "bool":
        raise TypeError(
            f"where must be boolean (True = take part), but its dtype is {dtype_name(array)}; compare or convert it"
        )
    return rows.bring_broadcast(array, "where")


def flag(value: object, name: str) -> bool:
    """Accept True or False, and nothing that is merely truthy or falsy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, but got {short(value)}; pass one of these")
    return bool(value)


def whole_number(value: object, name: str, low: int | None = None, high: int = LARGEST) -> int:
    """Return the value as an int if it is an integer of at least `low`, if given, and at most `high`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, but got {short(value)}; pass an int")
    result = int(value.__index__())
    if result < (-LARGEST if low is None else low):
        raise ValueError(f"{name} must be at least {low or -LARGEST}, but got {short(result)}; pass a larger one")
    if result > high:
        raise ValueError(f"{name} must be at most {high}, but got {short(result)}; pass a smaller one")
    return result


def _first(array: Array, where: Array) -> float:
    """Return the first offending entry, for the error message."""
    found = array[where].reshape(-1)[0]
    return float(found.detach() if is_tensor(found) else found)


def short(value: object) -> str:
    """Return the value as an error message shows it: on one line, and not for long."""
    if isinstance(value, int) and abs(value) > LARGEST:  # Python prints no number of thousands of digits
        return f"about {'-' * (value < 0)}2**{abs(value).bit_length() - 1}"
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else type(value).__name__
