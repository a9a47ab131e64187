"""How fast are softmax, log_softmax, logsumexp and cross_entropy of CPU tensors, forward and back, against PyTorch?

    .venv/bin/python bench/tensors.py [--quick]

Unit: ratios. "forward 1.5" means that PyTorch takes 1.5 times our time. Both take turns in one run on the same tensor,
new results each time, and the best of several turns counts. "both" is forward and backward, with a gradient that is
given. What is timed is checked first. The last lines are calls on ten numbers, where what counts is the way there.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import softscope as ss

SHAPES = [(500_000, 8), (40_000, 100), (4096, 1024), (1024, 4096), (256, 32_768), (256, 131_072), (1, 8_000_000)]
DTYPES = [torch.float32, torch.bfloat16, torch.float64]

Function = Callable[[torch.Tensor], torch.Tensor]


def pairs(targets: torch.Tensor) -> dict[str, tuple[Function, Function]]:
    """For each function, ours and PyTorch's, as a user calls them."""
    return {
        "softmax": (ss.softmax, lambda x: torch.softmax(x, -1)),
        "log_softmax": (ss.log_softmax, lambda x: torch.log_softmax(x, -1)),
        "logsumexp": (ss.logsumexp, lambda x: torch.logsumexp(x, -1)),
        "cross_entropy": (lambda x: ss.cross_entropy(x, targets), lambda x: functional.cross_entropy(x, targets)),
    }


def forward(function: Function, x: torch.Tensor) -> Callable[[], Any]:
    return lambda: function(x)


def both(function: Function, x: torch.Tensor) -> Callable[[], Any]:
    leaf = x.clone().requires_grad_(True)
    pull = torch.rand_like(function(x))

    def run() -> Any:
        return torch.autograd.grad(function(leaf), leaf, pull)[0]

    return run


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], turns: int, calls: int = 1) -> float:
    """Their best time over ours, taking turns."""
    best = [math.inf, math.inf]
    for _ in range(turns):
        for i, function in enumerate((ours, theirs)):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[1] / best[0]


def check(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Who is timed must be right: both agree, but for the roundings of the one that makes more of them."""
    a, b = ours(), theirs()
    close = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.05}[a.dtype]
    torch.testing.assert_close(a, b, rtol=close, atol=close * float(b.abs().max()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three shapes, few turns")
    quick = parser.parse_args().quick
    random = torch.Generator().manual_seed(0)
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for count, n in SHAPES[1:6:2] if quick else SHAPES:
        targets = torch.randint(0, n, (count,), generator=random)
        for dtype in DTYPES:
            x = torch.randn(count, n, generator=random).to(dtype)
            kind = str(dtype).rpartition(".")[2]
            for name, (ours, theirs) in pairs(targets).items():
                line = f"{count:>7} × {n:<8} {kind:9} {name:14}"
                for way in (forward, both):
                    torch.manual_seed(0)  # the same gradient for both
                    a = way(ours, x)
                    torch.manual_seed(0)
                    b = way(theirs, x)
                    check(a, b)
                    found = ratio(a, b, 3 if quick else 7)
                    ratios.setdefault((kind, name, way.__name__), []).append(found)
                    line += f"  {way.__name__} {found:6.2f}"
                print(line, flush=True)
    print("\ngeometric means")
    for (kind, name, way), values in ratios.items():
        print(f"  {kind:9} {name:14} {way:8} {math.exp(sum(map(math.log, values)) / len(values)):6.2f}")
    print("\nten numbers")
    ten = torch.randn(10, generator=random)
    for name, (ours, theirs) in pairs(torch.tensor(3)).items():
        found = [ratio(way(ours, ten), way(theirs, ten), 20, calls=200) for way in (forward, both)]
        print(f"  {name:14}  forward {found[0]:6.2f}  both {found[1]:6.2f}")


if __name__ == "__main__":
    main()
