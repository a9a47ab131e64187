"""How fast are softmax, log_softmax, logsumexp and partition over rows, against PyTorch, SciPy and a copy?

    .venv/bin/python bench/rows.py [--quick] [--chart rows.svg]

Unit: ratios. "torch 1.5" means that PyTorch takes 1.5 times as long as we do; "copy 2.0" that we take twice as long as
copying the array. All contenders take turns in one run on the same float32 array, with `out=` where available, and the
best of several turns counts. All arrays start on a cache line. Results are checked before they are timed.
"""

from __future__ import annotations

import numpy as np
import torch
from harness import SHAPES, Contenders, Ratios, aligned, arguments, best, finish, shape_name
from scipy import special

import softscope as ss


def contenders(x: np.ndarray) -> dict[str, Contenders]:
    """The contenders for each function; ours is called the way a user calls it."""
    t, out, t_out = torch.from_numpy(x), aligned(x.shape), torch.empty(x.shape)
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


def check(functions: Contenders) -> None:
    """Check that ours agrees with PyTorch."""
    ours = functions["ours"]()
    got = np.asarray(ours.lse if isinstance(ours, ss.Partition) else ours, dtype=np.float64)
    np.testing.assert_allclose(got, np.asarray(functions["torch"](), dtype=np.float64), rtol=1e-3, atol=1e-4)


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    ratios = Ratios("softmax, log_softmax, logsumexp, partition: float32 rows")
    for shape in SHAPES[2:9:3] if options.quick else SHAPES:
        x = aligned(shape)
        x[...] = rng.standard_normal(shape, dtype=np.float32)
        for task, who in contenders(x).items():
            check(who)
            ratios.add(task, shape_name(shape), best(who, 3 if options.quick else 15))
    finish(ratios, options.chart)


if __name__ == "__main__":
    main()
