"""A claim: where the texts make it, what it says in our words, and the function that checks it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softscope.experiments.catalogue import NAMES
from softscope.experiments.ledger.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope._text import Text

_ID = re.compile(r"S[0-4]-\d\d")


@dataclass(frozen=True)
class Claim:
    """One claim in the texts.

    Attributes:
        id: such as S1-03, the third claim of text 001.
        says: the claim in our words.
        where: chapter and lines in the text.
        experiment: the `softscope.experiments` module that demonstrates it; empty if there is none.
        slow: whether to skip it in the fast tier.
        check: takes the measurement and returns the outcome.
    """

    id: str
    says: Text
    where: str
    experiment: str
    slow: bool
    check: Callable[[], Outcome]

    @property
    def text(self) -> str:
        """Return the text's number, such as 001."""
        return f"00{self.id[1]}"


def claim(
    identity: str, *, says: Text, where: str, experiment: str = "", slow: bool = False
) -> Callable[[Callable[[], Outcome]], Claim]:
    """Register the decorated function as this claim's check."""
    if not _ID.fullmatch(identity):
        raise ValueError(f"identity must look like S1-03, but got {identity!r}; number it like the others")
    if experiment and experiment not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(NAMES)}, but got {experiment!r}")
    return lambda check: Claim(identity, says, where, experiment, slow, check)


def generator(name: str) -> np.random.Generator:
    """Return a generator seeded by the name of a claim or shared measurement, so the order of checks does not matter.

    >>> float(generator("S1-03").random()) == float(generator("S1-03").random())
    True
    """
    return np.random.default_rng(list(name.encode()))
