"""Invented worlds: for each claim one in which it is the other way round, or the reason why none can be invented."""

import importlib
from typing import NamedTuple

TEXTS = ("000", "001", "002", "003", "004")


class World(NamedTuple):
    """What is different in it, as dotted names and their values there, and the verdict that the claim gets."""

    verdict: str
    patches: dict[str, object]


def _of(name):
    return {
        claim: value
        for text in TEXTS
        for claim, value in getattr(importlib.import_module(f"experiments.ledger.worlds_{text}"), name).items()
    }


WORLDS: dict[str, World] = _of("WORLDS")
WHY_NOT: dict[str, str] = _of("WHY_NOT")
