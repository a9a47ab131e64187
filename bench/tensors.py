"""How fast are softmax, log_softmax, logsumexp and cross_entropy on CPU tensors, forward and backward, against PyTorch?

    .venv/bin/python bench/tensors.py [--quick] [--chart tensors.svg]

Unit: ratios. "torch 1.5" means that PyTorch takes 1.5 times as long as we do. Both take turns in one run on the same
tensor, with new results each time, and the best of several turns counts. "both" is forward and backward, with a given
gradient. Results are checked before they are timed. The last lines are calls on ten numbers, where overhead dominates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from harness import Ratios, arguments, best, finish, shape_name
from torch.nn import functional

import softscope as ss

SHAPES = [(500_000, 8), (40_000, 100), (4096, 1024), (1024, 4096), (256, 32_768), (256, 131_072), (1, 8_000_000)]
DTYPES = [torch.float32, torch.bfloat16, torch.float64]

Function = Callable[[torch.Tensor], torch.Tensor]


def pairs(targets: torch.Tensor) -> dict[str, tuple[Function, Function]]:
    """Our version and PyTorch's of each function, called the way a user calls them."""
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


def check(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Check that both agree, up to the rounding errors of the less accurate one."""
    a, b = ours(), theirs()
    close = {torch.float64: 1e-10, torch.float32: 1e-3, torch.bfloat16: 0.05}[a.dtype]
    torch.testing.assert_close(a, b, rtol=close, atol=close * float(b.abs().max()))


def main() -> None:
    options = arguments(__doc__)
    random = torch.Generator().manual_seed(0)
    ratios = Ratios("CPU tensors, forward and backward")
    for shape in SHAPES[1:6:2] if options.quick else SHAPES:
        targets = torch.randint(0, shape[1], shape[:1], generator=random)
        for dtype in DTYPES:
            x = torch.randn(shape, generator=random).to(dtype)
            for name, (ours, theirs) in pairs(targets).items():
                for way in (forward, both):
                    who = contenders(way, ours, theirs, x)
                    check(who["ours"], who["torch"])
                    task = f"{name} {str(dtype).rpartition('.')[2]} {way.__name__}"
                    ratios.add(task, shape_name(shape), best(who, 3 if options.quick else 7))
    ten = torch.randn(10, generator=random)
    for name, (ours, theirs) in pairs(torch.tensor(3)).items():
        for way in (forward, both):
            ratios.add(f"{name} {way.__name__}", "10", best(contenders(way, ours, theirs, ten), 20, calls=200))
    finish(ratios, options.chart)


def contenders(way: Callable[..., Any], ours: Function, theirs: Function, x: torch.Tensor) -> dict[str, Any]:
    """Ours and PyTorch's, with the same gradient."""
    torch.manual_seed(0)
    mine = way(ours, x)
    torch.manual_seed(0)
    return {"ours": mine, "torch": way(theirs, x)}


if __name__ == "__main__":
    main()
