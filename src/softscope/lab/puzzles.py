"""The puzzles of lesson 10: ledger claims that fail or hold only sometimes, mixed with some that hold."""

from __future__ import annotations

import functools

from softscope._text import Text
from softscope.experiments.ledger import CONTRADICTIONS, Claim, Entry, check, claims

# Fast claims with a surprising verdict, plus a few that simply hold: errors alone would give the answer away. None of
# them denies something throughout: “it fails that nothing …” is a riddle of its own.
CHOSEN = (
    "S1-03", "S0-06", "S3-12", "S2-20", "S3-39", "S4-05", "S2-46", "S0-19", "S0-14", "S2-29", "S4-01", "S3-14",
    "S2-44", "S1-16", "S4-10", "S0-18", "S2-52", "S2-17",
)  # fmt: skip


def claim(identity: str) -> Claim:
    """Return the claim with this id, without measuring it.

    >>> claim("S1-03").text
    '001'
    """
    for one in claims():
        if one.id == identity:
            return one
    raise ValueError(f"identity must be that of a claim, but got {identity!r}; CHOSEN lists those used here")


@functools.cache
def puzzle(identity: str) -> Entry:
    """Return the claim with its measured outcome; we measure it once per process.

    >>> puzzle("S1-03").outcome.verdict
    'fails'
    """
    return check([claim(identity)])[0]


def contradictions() -> list[Text]:
    """Return the points on which the texts disagree."""
    return [one.about for one in CONTRADICTIONS]
