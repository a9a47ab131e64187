"""Training on associative recall, with and without 1/√d: accuracies by seed, over the number of keys in all.

For the claims about training. A claim measures over a sweep, not one setting:

    found = sweep(d=64, optimizer="adam")           # {16: [0.07, 0.35, …], 20: […], …, 64: […]}, one number per seed
    flip_point(found)                               # Flip(never=16, always=48): no seed learns with 16 keys,
                                                    # every seed does from 48 on, in between it depends on the seed
    gained(d=64, optimizer="adam", keys=16)         # what twice the steps add, by seed: ≈ 0 is starving, not slow
    misled(d=64, optimizer="adam", keys=16)         # share of rows that end blocked on a wrong key, by seed
    sweep(d=64, company="fixed", keys=(64,))        # 64 keys, but always in the same groups of 16
    sweep(d=64, slower=10, keys=(16,))              # a tenth of the learning rate

Every run is cached, so claims that ask for the same setting share it. Chance is 1 in 16.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from softscope.experiments import starving
from softscope.experiments.ledger.claim import current_seed
from softscope.experiments.recall import PAIRS
from softscope.experiments.starving import BATCH, KEYS, RATES, SEEDS, Flip, Run, Setting
from softscope.experiments.starving import flip as flip_point

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BATCH", "KEYS", "LONG", "PAIRS", "RATES", "SEEDS", "STEPS", "Flip", "accuracies", "accuracy",
           "flip_point", "gained", "misled", "sweep"]  # fmt: skip

STEPS = 300
LONG = 2 * STEPS  # an unscaled run trains twice as long, to tell a model that learns late from one that starves


@functools.cache
def _run(setting: Setting, seed: int) -> Run:
    return starving.run(setting, steps=STEPS if setting.scaled else LONG, seed=seed + len(SEEDS) * current_seed())


def accuracy(d: int, scaled: bool, optimizer: Any, seed: int, *, after: int = STEPS, **setting: Any) -> float:
    """Share of right answers over the last 20 of `after` steps: `STEPS`, or `LONG` if unscaled.

    `setting` takes `keys`, `pairs`, `slower` and `company` of `softscope.experiments.starving.Setting`.
    """
    found = _run(Setting(d=d, scaled=scaled, optimizer=optimizer, **setting), seed)
    if after > len(found.answers):
        raise ValueError(f"after must be at most {len(found.answers)} steps, but got {after}; pass recall_runs.STEPS")
    return found.accuracy(after)


def accuracies(d: int, scaled: bool, optimizer: str, seeds: Sequence[int] = SEEDS, **more: Any) -> list[float]:
    """One accuracy per seed; `more` as for `accuracy`."""
    return [accuracy(d, scaled, optimizer, seed, **more) for seed in seeds]


def sweep(
    d: int = 64,
    *,
    optimizer: str = "adam",
    scaled: bool = False,
    keys: Sequence[int] = KEYS,
    after: int | None = None,
    seeds: Sequence[int] = SEEDS,
    **setting: Any,
) -> dict[int, list[float]]:
    """Accuracies by number of keys in all, one per seed, after `LONG` steps if unscaled and `STEPS` if scaled."""
    after = after or (STEPS if scaled else LONG)
    return {n: accuracies(d, scaled, optimizer, seeds, after=after, keys=n, **setting) for n in keys}


def gained(d: int = 64, *, optimizer: str = "adam", seeds: Sequence[int] = SEEDS, **setting: Any) -> list[float]:
    """What the unscaled model's accuracy gains between `STEPS` and `LONG` steps, by seed."""
    early, late = (accuracies(d, False, optimizer, seeds, after=after, **setting) for after in (STEPS, LONG))
    return [b - a for a, b in zip(early, late, strict=True)]


def misled(d: int = 64, *, optimizer: Any = "adam", seeds: Sequence[int] = SEEDS, **setting: Any) -> list[float]:
    """Share of the unscaled model's rows that are blocked on a wrong key after `LONG` steps, by seed."""
    return [_run(Setting(d=d, optimizer=optimizer, **setting), seed).misled for seed in seeds]
