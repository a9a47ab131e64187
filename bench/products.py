"""How fast is J·v over rows, the backward pass of softmax, against PyTorch's and a copy?

    .venv/bin/python bench/products.py [--quick] [--chart products.svg]

Unit: ratios. "torch 1.5" means that PyTorch takes 1.5 times as long as we do; "copy 2.0" that we take twice as long as
copying one of the two arrays. All take turns in one run on the same float32 arrays, each with its own reused output,
and the best of several turns counts. Results are checked before they are timed. "shifted" has v far from 0 and "sharp"
has weights next to one-hot, where ours makes a second pass and PyTorch's loses its digits.
"""

from __future__ import annotations

import numpy as np
import torch
from harness import SHAPES, Contenders, Ratios, aligned, arguments, best, finish, shape_name

from softscope._backends.engine import kernels

KINDS = {"plain": (1.0, 0.0), "shifted": (1.0, 10.0), "sharp": (30.0, 0.0)}


def contenders(p: np.ndarray, v: np.ndarray) -> Contenders:
    """The contenders; ours is called the way a backward pass calls it."""
    out = aligned(p.shape)
    weights, vectors, t_out = torch.from_numpy(p), torch.from_numpy(v), torch.empty(p.shape)
    backward = torch.ops.aten._softmax_backward_data.out

    def ours() -> np.ndarray:
        assert kernels.jacobian_product(p, v, 1.0, 1.0, out)
        return out

    return {
        "ours": ours,
        "torch": lambda: backward(vectors, weights, -1, torch.float32, grad_input=t_out),
        "copy": lambda: t_out.copy_(weights),
    }


def check(functions: Contenders, v: np.ndarray) -> None:
    """Check that both agree, as far as PyTorch's digits go."""
    ours, torchs = (np.asarray(functions[name](), dtype=np.float64) for name in ("ours", "torch"))
    np.testing.assert_allclose(ours, torchs, rtol=1e-3, atol=1e-5 * float(np.abs(v).max()))


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    ratios = Ratios("J·v, the backward pass of softmax: float32 rows")
    for shape in SHAPES[2:9:3] if options.quick else SHAPES:
        for kind, (spread, shift) in KINDS.items():
            logits = spread * rng.standard_normal(shape, dtype=np.float32)
            p = torch.softmax(torch.from_numpy(logits), -1).numpy()
            v = aligned(shape)
            v[...] = rng.standard_normal(shape, dtype=np.float32) + np.float32(shift)
            who = contenders(p, v)
            check(who, v)
            ratios.add(kind, shape_name(shape), best(who, 3 if options.quick else 15))
    finish(ratios, options.chart)


if __name__ == "__main__":
    main()
