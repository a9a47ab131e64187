"""A claim: where the texts make it, what it says in our words, and the function that checks it."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softscope.experiments.catalogue import NAMES
from softscope.experiments.ledger.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softscope._text import Text

_ID = re.compile(r"S[0-4]-\d\d")
_seed = contextvars.ContextVar("seed of the ledger", default=0)


@dataclass(frozen=True)
class Claim:
    """One claim in the texts.

    Attributes:
        id: such as S1-03, the third claim of text 001.
        says: the claim in our words.
        quote: a few words of the text itself, in its language.
        where: chapter and lines in the text.
        experiment: the `softscope.experiments` module that demonstrates it; empty if there is none.
        slow: whether to skip it in the fast tier.
        check: takes the measurement and returns the outcome.
    """

    id: str
    says: Text
    quote: str
    where: str
    experiment: str
    slow: bool
    check: Callable[[], Outcome]

    @property
    def text(self) -> str:
        """Return the text's number, such as 001."""
        return f"00{self.id[1]}"

    @property
    def code(self) -> tuple[str, int]:
        """Return the module that checks the claim and the line where its check begins."""
        return self.check.__module__, inspect.getsourcelines(self.check)[1]


def claim(
    identity: str, *, says: Text, where: str, quote: str = "", experiment: str = "", slow: bool = False
) -> Callable[[Callable[[], Outcome]], Claim]:
    """Register the decorated function as this claim's check."""
    if not _ID.fullmatch(identity):
        raise ValueError(f"identity must look like S1-03, but got {identity!r}; number it like the others")
    if experiment and experiment not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(NAMES)}, but got {experiment!r}")
    return lambda check: Claim(identity, says, quote, where, experiment, slow, check)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw every sample anew in this block, from another seed."""
    token = _seed.set(seed)
    try:
        yield
    finally:
        _seed.reset(token)


def current_seed() -> int:
    """Return the seed of the samples drawn now; 0 unless `seeded` says otherwise."""
    return _seed.get()


def generator(name: str) -> np.random.Generator:
    """Return a generator seeded by the name of a claim or shared measurement, so the order of checks does not matter.

    >>> float(generator("S1-03").random()) == float(generator("S1-03").random())
    True
    >>> with seeded(1):
    ...     other = float(generator("S1-03").random())
    >>> other == float(generator("S1-03").random())
    False
    """
    seed = current_seed()
    return np.random.default_rng([*name.encode(), *([seed] if seed else [])])
