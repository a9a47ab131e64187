"""Which steps to read, and which of their query rows: few enough to be cheap, and at their true positions."""

from __future__ import annotations

import random

DENSE = 10  # read each of the first steps: anything wrong at the start shows there
# (up to this step, read every so many); SPARSE after the last.
THINNING = ((100, 10), (1000, 25))
SPARSE = 50

# Averages include a row if it sees at least FEWEST keys, or half of what the richest row of its sequence sees: early
# causal rows see few keys and say little about sharpness.
FEWEST = 32


def default_schedule(step: int) -> bool:
    """Dense in the first steps, sparse later.

    >>> [step for step in range(200) if default_schedule(step)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175]
    """
    if step < DENSE:
        return True
    for until, every in THINNING:
        if step < until:
            return step % every == 0
    return step % SPARSE == 0


def choose_rows(many: int | None, first: int, n: int, rng: random.Random) -> list[int] | None:
    """`many` of the rows first … n−1, evenly spaced from a random start; None means all rows from 0 on.

    Even spacing covers early and late rows in every reading; the random start gives every row a chance.

    >>> choose_rows(4, 2, 10, random.Random(0))
    [3, 5, 7, 9]
    """
    first = min(first, n - 1)
    if many is None or many >= n - first:
        return None
    stride = (n - first) / many
    start = first + rng.random() * stride
    return [min(int(start + i * stride), n - 1) for i in range(many)]
