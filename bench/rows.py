"""How fast are softmax, log_softmax, logsumexp and partition over rows, against PyTorch, SciPy and a copy?

    .venv/bin/python bench/rows.py [--quick]

Unit: ratios. "torch 1.5" means that PyTorch takes 1.5 times our time; "copy 2.0" that we take twice the time of
copying the array. All contenders take turns in one run on the same float32 array, with `out=` where it is offered, and
the best of several turns counts. What is timed is checked first.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy import special

import softscope as ss

SHAPES = [(500_000, 8), (125_000, 32), (40_000, 100), (16_384, 256), (4096, 1024), (1024, 4096), (128, 32_768),
          (32, 131_072), (4, 1_000_000), (1, 8_000_000)]  # fmt: skip


def contenders(x: np.ndarray) -> dict[str, dict[str, Callable[[], object]]]:
    """For each function, who computes it; ours is called as a user calls it."""
    t, out, t_out = torch.from_numpy(x), np.empty_like(x), torch.empty(x.shape)
    t_row = torch.empty(x.shape[:-1])
    return {
        "softmax": {
            "ours": lambda: ss.softmax(x, out=out),
            "torch": lambda: torch.softmax(t, -1, out=t_out),
            "scipy": lambda: special.softmax(x, axis=-1),
            "copy": lambda: t_out.copy_(t),
        },
        "log_softmax": {
            "ours": lambda: ss.log_softmax(x, out=out),
            "torch": lambda: torch.log_softmax(t, -1, out=t_out),
            "scipy": lambda: special.log_softmax(x, axis=-1),
            "copy": lambda: t_out.copy_(t),
        },
        "logsumexp": {
            "ours": lambda: ss.logsumexp(x),
            "torch": lambda: torch.logsumexp(t, -1, out=t_row),
            "scipy": lambda: special.logsumexp(x, axis=-1),
            "copy": lambda: t_out.copy_(t),
        },
        "partition": {
            "ours": lambda: ss.partition(x),
            "torch": lambda: torch.logsumexp(t, -1, out=t_row),
            "copy": lambda: t_out.copy_(t),
        },
    }


def best(functions: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The shortest time of each, taking turns."""
    times = dict.fromkeys(functions, math.inf)
    for _ in range(turns):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def check(functions: dict[str, Callable[[], object]]) -> None:
    """Who is timed must be right: all agree."""
    ours = functions["ours"]()
    got = np.asarray(ours.lse if isinstance(ours, ss.Partition) else ours, dtype=np.float64)
    np.testing.assert_allclose(got, np.asarray(functions["torch"](), dtype=np.float64), rtol=1e-3, atol=1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three shapes, few turns")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    ratios: dict[tuple[str, str], list[float]] = {}
    for shape in SHAPES[2:9:3] if quick else SHAPES:
        x = rng.standard_normal(shape).astype(np.float32)
        for function, who in contenders(x).items():
            check(who)
            times = best(who, 3 if quick else 9)
            line = f"{shape[0]:>7} × {shape[1]:<8} {function:12}"
            for name, seconds in times.items():
                if name == "ours":
                    continue
                ratio = times["ours"] / seconds if name == "copy" else seconds / times["ours"]
                ratios.setdefault((function, name), []).append(ratio)
                line += f"  {name} {ratio:6.2f}"
            print(line)
    print("\ngeometric means")
    for (function, name), values in ratios.items():
        print(f"  {function:12} {name:6} {math.exp(sum(map(math.log, values)) / len(values)):6.2f}")


if __name__ == "__main__":
    main()
