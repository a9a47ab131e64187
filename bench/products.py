"""How fast is J·v, the backward pass of softmax, over rows, against PyTorch's own and a copy?

    .venv/bin/python bench/products.py [--quick]

Unit: ratios. "torch 1.5" means that PyTorch takes 1.5 times our time; "copy 2.0" that we take twice the time of copying
one of the two arrays. All take turns in one run on the same float32 arrays, each with an output of its own that it
keeps, and the best of several turns counts. What is timed is checked first. "shifted" has v far from 0 and "sharp"
weights next to one-hot, where ours takes a second look and PyTorch's loses its digits.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch

from softscope import _kernels

SHAPES = [(500_000, 8), (125_000, 32), (40_000, 100), (16_384, 256), (4096, 1024), (1024, 4096), (128, 32_768),
          (32, 131_072), (4, 1_000_000), (1, 8_000_000)]  # fmt: skip
KINDS = {"plain": (1.0, 0.0), "shifted": (1.0, 10.0), "sharp": (30.0, 0.0)}


def contenders(p: np.ndarray, v: np.ndarray) -> dict[str, Callable[[], object]]:
    """Who computes it; ours is called as a backward pass calls it."""
    out = np.empty_like(p)
    weights, vectors, t_out = torch.from_numpy(p), torch.from_numpy(v), torch.empty(p.shape)
    backward = torch.ops.aten._softmax_backward_data.out

    def ours() -> np.ndarray:
        assert _kernels.jacobian_product(p, v, 1.0, 1.0, out)
        return out

    return {
        "ours": ours,
        "torch": lambda: backward(vectors, weights, -1, torch.float32, grad_input=t_out),
        "copy": lambda: t_out.copy_(weights),
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


def check(functions: dict[str, Callable[[], object]], v: np.ndarray) -> None:
    """Who is timed must be right: both agree, as far as PyTorch's digits go."""
    ours, torchs = (np.asarray(functions[name](), dtype=np.float64) for name in ("ours", "torch"))
    np.testing.assert_allclose(ours, torchs, rtol=1e-3, atol=1e-5 * float(np.abs(v).max()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three shapes, few turns")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    ratios: dict[tuple[str, str], list[float]] = {}
    for shape in SHAPES[2:9:3] if quick else SHAPES:
        for kind, (spread, shift) in KINDS.items():
            logits = spread * rng.standard_normal(shape, dtype=np.float32)
            p = torch.softmax(torch.from_numpy(logits), -1).numpy()
            v = rng.standard_normal(shape, dtype=np.float32) + np.float32(shift)
            who = contenders(p, v)
            check(who, v)
            times = best(who, 3 if quick else 15)
            line = f"{shape[0]:>7} × {shape[1]:<8} {kind:8}"
            for name in ("torch", "copy"):
                ratio = times["ours"] / times[name] if name == "copy" else times[name] / times["ours"]
                ratios.setdefault((kind, name), []).append(ratio)
                line += f"  {name} {ratio:6.2f}"
            print(line)
    print("\ngeometric means")
    for (kind, name), values in ratios.items():
        print(f"  {kind:8} {name:6} {math.exp(sum(map(math.log, values)) / len(values)):6.2f}")


if __name__ == "__main__":
    main()
