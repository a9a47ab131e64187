"""How fast are sparsemax and entmax over rows, against the entmax package, our own softmax and a copy?

    .venv/bin/python bench/sparse.py [--quick] [--chart sparse.svg]

Unit: ratios. "entmax 30" means that the entmax package takes 30 times as long as we do; "copy 2.0" that we take twice
as long as copying the array; "softmax 1.5" that we take one and a half times as long as our softmax. Forward only,
float32, normal logits with standard deviations 1 and 4. All contenders take turns in one run on the same array, and the
best of several turns counts; the entmax package, which has no `out=`, takes fewer turns. Results are checked before
they are timed.
"""

from __future__ import annotations

import entmax
import numpy as np
import torch
from harness import SHAPES, Contenders, Ratios, arguments, best, finish, shape_name

import softscope as ss

SPREADS = (1.0, 4.0)


def contenders(x: np.ndarray) -> dict[str, Contenders]:
    """The contenders for each function; ours is called the way a user calls it."""
    t, out, t_out = torch.from_numpy(x), np.empty_like(x), torch.empty(x.shape)
    beside: Contenders = {
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


def check(functions: Contenders) -> None:
    """Check that both agree."""
    ours = np.array(functions["ours"](), dtype=np.float64)
    np.testing.assert_allclose(ours, np.asarray(functions["entmax"](), dtype=np.float64), rtol=0, atol=1e-4)


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    ratios = Ratios("sparsemax and entmax 1.5: float32 rows", limits=("softmax", "copy"))
    for shape in SHAPES[2:9:3] if options.quick else SHAPES:
        for spread in SPREADS:
            x = (spread * rng.standard_normal(shape)).astype(np.float32)
            for task, who in contenders(x).items():
                check(who)
                times = best(who, 5 if options.quick else 15, slow=("entmax",))
                ratios.add(task, f"{shape_name(shape)}, σ {spread:g}", times)
    finish(ratios, options.chart)


if __name__ == "__main__":
    main()
