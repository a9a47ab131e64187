"""Maps that break the contract, each with exactly the properties it must be found to break."""

from __future__ import annotations

from typing import Any

import numpy as np

from softscope.testing import PROPERTIES

from .right_maps import Row, softmax
from .wrong import WrongMaps

EVERYTHING = frozenset(PROPERTIES) - {"axis", "where", "smooth"}

WRONG = WrongMaps()
wrong = WRONG.breaking


# What the source texts compare softmax with.


@wrong("finite", "non_negative", "order", "shift", "continuity", "sharpens", "minus_infinity")
def linear(x: Row) -> Row:
    return x / x.sum()


@wrong("sums_to_one", "shift", "sharpens", "nan")
def relu(x: Row) -> Row:
    return np.maximum(x, 0.0)


@wrong("finite", "shift", "continuity", "sharpens")
def relu_normalised(x: Row) -> Row:
    return np.maximum(x, 0.0) / np.maximum(x, 0.0).sum()


@wrong("sums_to_one", "shift", "sharpens", "nan")
def sigmoid(x: Row) -> Row:
    return 1.0 / (1.0 + np.exp(-x))


@wrong("order", "continuity", "all_minus_infinity", "nan", "empty")
def hardmax(x: Row) -> Row:
    return (np.arange(x.size) == np.argmax(x)).astype(float)


@wrong("continuity", "all_minus_infinity")
def hardmax_that_shares_ties(x: Row) -> Row:
    best = (x == x.max()).astype(float) if x.size else np.zeros(0)
    return best / best.sum()


@wrong("finite")
def naive_softmax(x: Row) -> Row:
    return np.exp(x) / np.exp(x).sum()


@wrong("returns", "finite", "all_minus_infinity")
def naive_softmax_in_plain_python(x: Row) -> list[float]:
    from math import exp

    return [exp(v) / sum(exp(u) for u in x) for v in x]


@wrong("sharpens", "responds", "minus_infinity", "all_minus_infinity", "nan")
def uniform(x: Row) -> Row:
    return np.full(x.shape, 1.0 / max(x.size, 1))


# Beginners' mistakes.


@wrong("empty")
def softmax_without_the_empty_case(x: Row) -> Row:
    e = np.exp(x - np.max(x))
    return e / e.sum()


@wrong("sums_to_one", "shift", "sharpens")
def softmax_off_by_one(x: Row) -> Row:
    m = np.maximum(x.max(), 0.0) if x.size else 0.0
    e = np.exp(x - m)
    return e / (np.exp(-m) + e.sum())


@wrong("sums_to_one")
def softmax_with_an_epsilon(x: Row) -> Row:
    return softmax(x) / (1.0 + 1e-9)


@wrong("non_negative", "sums_to_one", "sharpens", "minus_infinity")
def log_softmax(x: Row) -> Row:
    if not x.size:
        return np.zeros(0)
    z = x - x.max()
    return z - np.log(np.exp(z).sum())


@wrong("order", "sharpens", "minus_infinity")
def softmax_of_the_negative(x: Row) -> Row:
    return softmax(-x)


@wrong("order", "permutation", "sharpens", "minus_infinity")
def softmax_that_sorts_its_output(x: Row) -> Row:
    return np.sort(softmax(x))


@wrong("order", "permutation", "minus_infinity")
def softmax_that_prefers_early_positions(x: Row) -> Row:
    return softmax(x - 0.25 * np.arange(x.size))


@wrong("input_unchanged", "integers")
def softmax_in_place(x: Row) -> Row:
    if x.size:
        x -= x.max()
    np.exp(x, out=x)
    x /= x.sum()
    return x


@wrong("input_unchanged")
def softmax_that_writes_to_its_input(x: Row) -> Row:
    x[...] = np.copy(x)
    return softmax(x)


@wrong("integers")
def softmax_into_zeros_like(x: Row) -> Row:
    result = np.zeros_like(x)
    result[...] = softmax(x)
    return result


@wrong("all_minus_infinity")
def softmax_with_a_big_negative_number(x: Row) -> Row:
    return softmax(np.where(np.isneginf(x), -1e9, x))


@wrong("minus_infinity", "all_minus_infinity")
def softmax_with_a_small_negative_number(x: Row) -> Row:
    return softmax(np.where(np.isneginf(x), -20.0, x))


@wrong("nan")
def softmax_that_hides_nan(x: Row) -> Row:
    return np.nan_to_num(softmax(x))


@wrong("continuity")
def softmax_that_drops_small_weights(x: Row) -> Row:
    p = softmax(x)
    p[p < 0.01] = 0.0
    return p / p.sum()


@wrong("continuity")
def softmax_at_temperature_one_hundredth(x: Row) -> Row:
    return softmax(100.0 * x)


@wrong("sharpens")
def softmax_that_flattens_large_logits(x: Row) -> Row:
    seen = x[np.isfinite(x)]
    spread = seen.max() - seen.min() if seen.size else 0.0
    return softmax(x / (1.0 + spread) ** 2)


# Not a map at all.


@wrong(*EVERYTHING)
def nothing(x: Row) -> None:  # noqa: ARG001
    return None


@wrong(*EVERYTHING)
def raising(x: Row) -> Row:
    raise RuntimeError(f"not written yet: {{x}} of shape {x.shape}\nsecond line")


@wrong(*EVERYTHING)
def leaving(x: Row) -> Row:  # noqa: ARG001
    raise SystemExit(3)


@wrong(*EVERYTHING)
def a_column(x: Row) -> Row:
    return softmax(x)[:, np.newaxis]


@wrong(*EVERYTHING)
def a_number(x: Row) -> float:
    return float(softmax(x).sum())


@wrong(*EVERYTHING)
def complex_weights(x: Row) -> Row:
    return softmax(x).astype(complex)


@wrong(*EVERYTHING)
def ragged(x: Row) -> list[Any]:
    return [[1.0] * (i + 1) for i in range(x.size + 2)]


class Hostile:
    """Fails whatever you ask of it."""

    def __array__(self, *_: Any, **__: Any) -> Row:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@wrong(*EVERYTHING)
def hostile(x: Row) -> Hostile:  # noqa: ARG001
    return Hostile()


@wrong(*EVERYTHING - {"returns", "nan", "empty", "all_minus_infinity", "input_unchanged"})
def always_nan(x: Row) -> Row:
    return np.full(x.shape, np.nan)


@wrong("returns")
def a_list(x: Row) -> list[float]:
    return list(softmax(x))


@wrong("returns", "order", "continuity", "all_minus_infinity", "nan", "empty")
def hardmax_of_integers(x: Row) -> Row:
    return (np.arange(x.size) == np.argmax(x)).astype(int)
