"""The five properties of softmax that the texts name, defined once: for the ledger, the experiment and the lesson.

Each property consists of checks of the contract battery (`softscope.testing.check_simplex_map`), and holds if they all
do. Wherever a map gives an answer, its weights are judged; where it gives none (NaN for finite scores, such as x/Σx at
[−1, 1]), it is not differentiable and its weights are no distribution.

    >>> import softscope
    >>> marks = report(softscope.softmax)
    >>> [property.name.en for property in marks if marks[property].held] == [p.name.en for p in FIVE]
    True
    >>> marks = report(lambda x: x / x.sum())
    >>> kept(marks), marks[IN_RANGE].held, marks[SUMS_TO_ONE].held
    (1, False, True)
    >>> print(marks[IN_RANGE].evidence.en)
    No weight may be negative, but the logit -1 gets -1.
    >>> marks[IN_RANGE].input
    array([-1.,  2.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softscope._text import LANGS, Text
from softscope.testing import check_simplex_map

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Property:
    """One of the five: its short name for tables, what it asks for, and the battery's checks that it consists of."""

    key: str
    name: Text
    claim: Text
    checks: tuple[str, ...]


STANDS_OUT = Property(
    "stands_out",
    Text(en="stands out", zh="突出大的"),
    Text(
        en="a larger score never gets a smaller weight, and amplifying the scores moves all the weight to the largest",
        zh="分数更大，权重不会更小；放大分数，权重就全部移向最大的一项",
    ),
    ("order", "sharpens"),
)
IN_RANGE = Property(
    "in_range",
    Text(en="in [0, 1]", zh="在 [0, 1] 内"),
    Text(en="no weight is negative, and none exceeds 1", zh="没有负的权重，也没有大于 1 的权重"),
    ("non_negative",),
)
SUMS_TO_ONE = Property(
    "sums_to_one",
    Text(en="sums to 1", zh="和为 1"),
    Text(en="the weights sum to 1", zh="权重之和为 1"),
    ("sums_to_one",),
)
DIFFERENTIABLE = Property(
    "differentiable",
    Text(en="differentiable", zh="可微"),
    Text(
        en="the weights have no jump and no kink, and there are weights for all finite scores",
        zh="权重没有跳跃，也没有折点；任何有限的分数都有权重",
    ),
    ("finite", "continuity", "smooth"),
)
DISTRIBUTION = Property(
    "distribution",
    Text(en="a distribution", zh="是概率分布"),
    Text(
        en="for all finite scores, the weights are non-negative and sum to 1, so that they read as probabilities",
        zh="对任何有限的分数，权重都非负且和为 1，可以读成概率",
    ),
    ("finite", "non_negative", "sums_to_one"),
)
FIVE = (STANDS_OUT, IN_RANGE, SUMS_TO_ONE, DIFFERENTIABLE, DISTRIBUTION)


@dataclass(frozen=True, eq=False)
class Mark:
    """Whether a map has a property.

    Attributes:
        held: whether every check of the property held.
        evidence: what was found, with its numbers: the first check that failed, or what held.
        input: the scores that show the failure (a tuple of rows if it takes several); None if it held.
    """

    held: bool
    evidence: Text
    input: Any = None


def report(weigh: Callable[[Any], Any]) -> dict[Property, Mark]:
    """Measure which of the five properties a map has.

    Args:
        weigh: takes a 1-D NumPy array of scores, returns as many weights.

    Returns:
        A mark for each property, in the order of `FIVE`.
    """
    recorded = _Recorded(weigh)
    found = {lang: check_simplex_map(recorded, lang=lang) for lang in LANGS}
    marks = {}
    for asked in FIVE:
        broken = [check for check in asked.checks if found["en"][check].status != "held"]
        shown = broken[:1] or list(asked.checks)
        sentences = {lang: " ".join(found[lang][check].sentence for check in shown) for lang in LANGS}
        said = Text(zh=sentences["zh"], en=sentences["en"])
        marks[asked] = Mark(not broken, said, found["en"][broken[0]].input if broken else None)
    if marks[IN_RANGE].held and recorded.over:
        row, weight = recorded.over
        said = Text(en=f"No weight may exceed 1, but one is {weight:g}.", zh=f"权重不能大于 1，但有一个是 {weight:g}。")
        marks[IN_RANGE] = Mark(False, said, row)
    return marks


def kept(marks: dict[Property, Mark]) -> int:
    """Count the properties that a map has."""
    return sum(mark.held for mark in marks.values())


class _Recorded:
    """Remembers the first finite scores for which a map gives a weight above 1; the battery does not look for them."""

    def __init__(self, weigh: Callable[[Any], Any]) -> None:
        self.weigh = weigh
        self.over: tuple[Any, float] | None = None

    def __call__(self, x: Any) -> Any:
        given = np.array(x, dtype=np.float64)
        weights = self.weigh(x)
        largest = float(np.max(weights, initial=-np.inf))
        if self.over is None and np.isfinite(given).all() and largest > 1.0 + 1e-12:
            self.over = given, largest
        return weights
