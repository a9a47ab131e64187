"""How long an attack may last and which seeds it takes; the environment sets both."""

import os
import time
from collections.abc import Iterator

import numpy as np

SEED = int(os.environ.get("SOFTSCOPE_ATTACK_SEED", "0"))
SECONDS = float(os.environ.get("SOFTSCOPE_ATTACK_SECONDS", "2"))


def attempts(least: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Seeds with their generators: at least `least`, and more until the time is over."""
    start, seed = time.monotonic(), SEED
    while seed - SEED < least or time.monotonic() - start < SECONDS:
        yield seed, np.random.default_rng(seed)
        seed += 1
