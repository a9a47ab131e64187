"""Numbers that this room takes: positive ones, and those in a range; the rest is `softscope._arguments`."""

import math

from softscope._arguments import number


def positive(value: object, name: str, fix: str, *, rule: str = "a positive number") -> float:
    """The value as a float, if it is finite and above 0."""
    result = number(value, name, rule)
    if not 0 < result < math.inf:
        raise ValueError(f"{name} must be {rule}, but {value} came; {fix}")
    return result


def between(value: object, name: str, low: float, high: float, fix: str) -> float:
    """The value as a float, if it lies in [low, high]."""
    result = number(value, name, f"a number in [{low}, {high}]")
    if not low <= result <= high:
        raise ValueError(f"{name} must lie in [{low}, {high}], but {value} came; {fix}")
    return result
