"""Find the claims and check them."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softscope.experiments.ledger import texts
from softscope.experiments.ledger.claim import Claim, seeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from softscope.experiments.ledger.outcome import Outcome


@dataclass(frozen=True)
class Entry:
    """A claim and its outcome; `seconds` is the time this run took."""

    claim: Claim
    outcome: Outcome
    seconds: float


@functools.cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the texts."""
    found: dict[str, Claim] = {}
    for module in pkgutil.iter_modules(texts.__path__):
        if not module.name.startswith("text_"):
            continue
        for value in vars(importlib.import_module(f"{texts.__name__}.{module.name}")).values():
            if isinstance(value, Claim):
                if value.id in found:
                    raise ValueError(f"{value.id} is defined twice, the second time in {module.name}; rename one")
                found[value.id] = value
    return tuple(found[name] for name in sorted(found))


def forget() -> None:
    """Drop the measurements that claims share, so that the next check takes them anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{texts.__name__}."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def check(
    chosen: Iterable[Claim], progress: Callable[[int, int, Claim], None] | None = None, seed: int = 0
) -> list[Entry]:
    """Check the claims in turn; `progress` receives the number done, the total and the next claim.

    Every claim draws its own samples, from the seed and its name. Another seed draws others.
    """
    todo = list(chosen)
    entries = []
    if seed:
        forget()
    try:
        with seeded(seed):
            for i, claim in enumerate(todo):
                if progress is not None:
                    progress(i, len(todo), claim)
                start = time.perf_counter()
                entries.append(Entry(claim, claim.check(), time.perf_counter() - start))
    finally:
        if seed:
            forget()
    return entries
