"""How fast are sparsemax and entmax over rows, against the entmax package, our own softmax and a copy?

    .venv/bin/python bench/sparse.py [--quick]

Unit: ratios. "entmax 30" means that the entmax package takes 30 times our time; "copy 2.0" that we take twice the time
of copying the array, "softmax 1.5" one and a half times that of our softmax. Forward only, float32, normal logits of
standard deviation 1 and 4. All contenders take turns in one run on the same array, and the best of several turns
counts; the entmax package, which has no `out=`, takes fewer turns. What is timed is checked first.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import entmax
import numpy as np
import torch

import softscope as ss

SHAPES = [(500_000, 8), (125_000, 32), (40_000, 100), (16_384, 256), (4096, 1024), (1024, 4096), (128, 32_768),
          (32, 131_072), (4, 1_000_000), (1, 8_000_000)]  # fmt: skip
SPREADS = (1.0, 4.0)


def contenders(x: np.ndarray) -> dict[str, dict[str, Callable[[], object]]]:
    """For each function, who computes it; ours is called as a user calls it."""
    t, out, t_out = torch.from_numpy(x), np.empty_like(x), torch.empty(x.shape)
    beside: dict[str, Callable[[], object]] = {
        "softmax": lambda: ss.softmax(x, out=out),
        "copy": lambda: t_out.copy_(t),
    }
    return {
        "sparsemax": {
            "ours": lambda: ss.sparsemax(x, out=out),
            "entmax": lambda: entmax.sparsemax(t, -1),
            **beside,
        },
        "entmax 1.5": {
            "ours": lambda: ss.entmax(x, 1.5, out=out),
            "entmax": lambda: entmax.entmax15(t, -1),
            **beside,
        },
    }


def best(functions: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The shortest time of each, taking turns."""
    times = dict.fromkeys(functions, math.inf)
    for turn in range(turns):
        for name, function in functions.items():
            if name == "entmax" and turn > 2:
                continue  # it takes most of the time, and three turns flatter it little
            start = time.perf_counter()
            function()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def check(functions: dict[str, Callable[[], object]]) -> None:
    """Who is timed must be right: both agree."""
    ours = np.array(functions["ours"](), dtype=np.float64)
    np.testing.assert_allclose(ours, np.asarray(functions["entmax"](), dtype=np.float64), rtol=0, atol=1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three shapes, few turns")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    ratios: dict[tuple[str, str], list[float]] = {}
    for shape in SHAPES[2:9:3] if quick else SHAPES:
        for spread in SPREADS:
            x = (spread * rng.standard_normal(shape)).astype(np.float32)
            for function, who in contenders(x).items():
                check(who)
                times = best(who, 5 if quick else 15)
                line = f"{shape[0]:>7} × {shape[1]:<8} spread {spread:g}  {function:11}"
                for name, seconds in times.items():
                    if name == "ours":
                        continue
                    ratio = seconds / times["ours"] if name == "entmax" else times["ours"] / seconds
                    ratios.setdefault((function, name), []).append(ratio)
                    line += f"  {name} {ratio:7.2f}"
                print(line)
    print("\ngeometric means")
    for (function, name), values in ratios.items():
        print(f"  {function:11} {name:8} {math.exp(sum(map(math.log, values)) / len(values)):7.2f}")


if __name__ == "__main__":
    main()
