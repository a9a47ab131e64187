"""What one head's rows add up to, as a row of numbers: which number stands where, and how two of them merge."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from softscope.doctor.listen.trained_codes import READINGS
from softscope.doctor.ranks import sketch
from softscope.doctor.read.head_sums import OF_ROWS, OF_SEQUENCES, TOP
from softscope.doctor.read.snapshot import Array

SPREADS: Final = ("judged", "blocked")
LISTS: Final = ("columns", "blocked_columns", "blocked_offsets", "blocked_tokens")
CODES: Final = ("cut", *READINGS.values())  # of whole sites; the smallest counts: a gradient that any rank has seen

ADDED: Final = (
    "ranks",  # that computed this head
    "sequences",
    *(f"{name}:{what}" for name in (*OF_ROWS, *OF_SEQUENCES) for what in ("sum", "n")),
    *(f"{name}:total" for name in LISTS),
    "blocked_own:top",
    "blocked_own:total",
    sketch.FIELD,
)
_OF_SPREAD: Final = ("rows", "sum", "sequences", "squares", "products", "counts")
_WIDE: Final = {sketch.FIELD: sketch.BINS} | {f"{name}:{what}": TOP for name in LISTS for what in ("at", "weight")}
NAMES: Final = (
    *ADDED,
    "max_logit",
    "lse_min",
    *(f"{name}:{what}" for name in SPREADS for what in _OF_SPREAD),
    *(f"{name}:{what}" for name in LISTS for what in ("at", "weight")),
    *CODES,
)
_EMPTY: Final = {"max_logit": -np.inf, "lse_min": np.inf} | dict.fromkeys(CODES, np.nan)


def _places() -> dict[str, slice]:
    found, at = {}, 0
    for name in NAMES:
        found[name] = slice(at, at + _WIDE.get(name, 1))
        at = found[name].stop
    return found


PLACES: Final = _places()
NUMBERS: Final = PLACES[NAMES[-1]].stop  # for each head


def nothing(heads: int) -> Array:
    """The sums over no rows, (heads, NUMBERS)."""
    found = np.zeros((heads, NUMBERS), np.float32)
    for name, value in _EMPTY.items():
        found[:, PLACES[name]] = value
    return found


def merged(one: Array, other: Array) -> Array:
    """The sums over the rows of both, (heads, NUMBERS); which of them comes first changes no more than rounding."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    found = np.empty_like(a)
    for name in ADDED:
        found[:, PLACES[name]] = a[:, PLACES[name]] + b[:, PLACES[name]]
    # In these, NaN stays: a logit that is NaN must be seen.
    found[:, PLACES["max_logit"]] = np.maximum(a[:, PLACES["max_logit"]], b[:, PLACES["max_logit"]])
    found[:, PLACES["lse_min"]] = np.minimum(a[:, PLACES["lse_min"]], b[:, PLACES["lse_min"]])
    for name in CODES:
        found[:, PLACES[name]] = np.fmin(a[:, PLACES[name]], b[:, PLACES[name]])
    for name in LISTS:
        _merge_list(name, a, b, found)
    for name in SPREADS:
        _merge_spread(name, a, b, found)
    with np.errstate(over="ignore"):  # a model that diverges
        return found.astype(np.float32)


def _merge_list(name: str, a: Array, b: Array, found: Array) -> None:
    """The columns with the most weight, among those that are so in one of them."""
    at, weight = (np.concatenate([x[:, PLACES[f"{name}:{what}"]] for x in (a, b)], axis=1) for what in ("at", "weight"))
    at[weight == 0.0] = np.inf
    order = np.argsort(at, axis=1, kind="stable")
    at, weight = np.take_along_axis(at, order, axis=1), np.take_along_axis(weight, order, axis=1)
    again = np.zeros(at.shape, bool)
    again[:, 1:] = (at[:, 1:] == at[:, :-1]) & np.isfinite(at[:, 1:])
    weight[:, :-1] += np.where(again[:, 1:], weight[:, 1:], 0.0)
    weight[again] = 0.0
    first = np.argsort(-weight, axis=1, kind="stable")[:, :TOP]
    weight = np.take_along_axis(weight, first, axis=1)
    at = np.where(weight == 0.0, 0.0, np.take_along_axis(at, first, axis=1))
    found[:, PLACES[f"{name}:at"]], found[:, PLACES[f"{name}:weight"]] = at, weight


def _merge_spread(name: str, a: Array, b: Array, found: Array) -> None:
    """The error around the common mean, of which the two parts were each around their own."""
    both = (a[:, PLACES["sequences"]] > 0) & (b[:, PLACES["sequences"]] > 0)
    parts = [{what: x[:, PLACES[f"{name}:{what}"]] for what in _OF_SPREAD} for x in (a, b)]
    for part, x in zip(parts, (a, b), strict=True):
        # A single sequence was split into runs, because one alone has no error; together with others it counts as one.
        alone = both & (x[:, PLACES["sequences"]] == 1)
        whole: dict[str, Any] = {
            "sequences": part["rows"] > 0,
            "squares": 0.0,
            "products": 0.0,
            "counts": part["rows"] ** 2,
        }
        part |= {what: np.where(alone, value, part[what]) for what, value in whole.items()}
    total = {what: parts[0][what] + parts[1][what] for what in ("rows", "sum", "sequences", "counts")}
    mean = total["sum"] / np.maximum(total["rows"], 1.0)
    total |= {"squares": np.zeros_like(mean), "products": np.zeros_like(mean)}
    for part in parts:
        off = np.where(part["rows"] > 0, part["sum"] / np.maximum(part["rows"], 1.0) - mean, 0.0)
        total["squares"] += part["squares"] + 2.0 * off * part["products"] + off**2 * part["counts"]
        total["products"] += part["products"] + off * part["counts"]
    for what, value in total.items():
        found[:, PLACES[f"{name}:{what}"]] = value
