"""How fast is sparse attention, against our own softmax attention and against tensor operations, tile by tile?

    .venv/bin/python bench/sparse_attention.py [--quick] [--alpha 1.5 2 1.3] [--chart sparse_attention.svg]

Unit: ratios. "softmax 1.3" means that `softscope.attention` with softmax takes 1.3 times as long as with this alpha,
both with their statistics; "tiles 20" that the same sparse attention by tensor operations, one tile of rows at a time
and without statistics, takes 20 times as long. float32. Each key has one component that every query sees, high or low
for 32 keys at a time: the low ones get no weight, so that the given share of key blocks is empty for every query; the
rest is random. The share of (6 queries × 32 keys) tiles that are empty is measured and printed. All take turns in one
run, the best of several turns counts, and results are checked against float64 before they are timed.
"""

from __future__ import annotations

import torch
from harness import Contenders, Ratios, best, finish, machine, parser, shape_name

import softscope as ss
from softscope import bounds
from softscope._arguments.attention import prepare
from softscope._backends.torch import dense_attention, tiled_attention

SHAPES = [(2, 4, 512, 64), (1, 8, 1024, 128), (1, 4, 2048, 64), (1, 2, 4096, 128), (1, 2, 4096, 64)]
EMPTY = (0.0, 0.3, 0.6, 0.8, 0.95)
KEYS, ROWS = 32, 6


def inputs(shape: tuple[int, ...], empty: float) -> list[torch.Tensor]:
    """q, k, v with about this share of key blocks empty."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape) for _ in range(3))
    *_, m, d = shape
    alive = torch.rand(m // KEYS) >= empty
    alive[0] = True  # the first rows of causal attention see nothing else
    q[..., 0] = d**0.5
    k[..., 0] = torch.where(alive.repeat_interleave(KEYS), 8.0, -8.0)
    return [q, k, v]


def tiles(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, alpha: float, causal: bool) -> torch.Tensor:
    """The same by tensor operations, without statistics."""
    return tiled_attention.output(prepare(q, k, v, alpha=alpha, causal=causal).spread(), None)


def measured(q: torch.Tensor, k: torch.Tensor, alpha: float, causal: bool) -> float:
    """The share of tiles without weight, among those with a visible key, in the first head."""
    call = prepare(q[:1, :1], k[:1, :1], k[:1, :1], alpha=alpha, causal=causal)
    _, x, visible = dense_attention.logits(call, None, torch.float32)
    rows = x.shape[-2] // ROWS * ROWS

    def some(where: torch.Tensor) -> torch.Tensor:
        return where[0, 0, :rows].reshape(rows // ROWS, ROWS, -1, KEYS).any(dim=3).any(dim=1)

    weight = some(dense_attention.weights(x, visible, None, alpha) > 0.0)
    return 1.0 - float(weight.sum() / some(visible).sum())


def tolerance(alpha: float) -> float:
    """How far rounded logits may move the output; beyond alpha 2, weights leave 0 with infinite slope."""
    return max(1e-4, 10.0 * bounds.moved(2e-6, alpha))


def forward(given: list[torch.Tensor], alpha: float, causal: bool, slow: bool) -> Contenders:
    q, k, v = given
    who: Contenders = {
        "ours": lambda: ss.attention(q, k, v, alpha=alpha, causal=causal, return_partition=True)[0],
        "softmax": lambda: ss.attention(q, k, v, causal=causal, return_partition=True)[0],
    }
    exact = ss.attention(*(x.double() for x in given), alpha=alpha, causal=causal)
    near = tolerance(alpha)
    torch.testing.assert_close(who["ours"]().double(), exact, rtol=near, atol=near)  # type: ignore[attr-defined]
    return who | {"tiles": lambda: tiles(q, k, v, alpha, causal)} if slow else who


def both_ways(given: list[torch.Tensor], alpha: float, causal: bool, slow: bool) -> Contenders:
    leaves = [x.clone().requires_grad_() for x in given]
    gradient = torch.randn_like(given[0])

    def through(function: object) -> object:
        return lambda: torch.autograd.grad(function(), leaves, gradient)[2]  # type: ignore[operator]

    who: Contenders = {
        "ours": through(lambda: ss.attention(*leaves, alpha=alpha, causal=causal, return_partition=True)[0]),
        "softmax": through(lambda: ss.attention(*leaves, causal=causal, return_partition=True)[0]),
    }
    exact = [x.double().requires_grad_() for x in given]
    output = ss.attention(*exact, alpha=alpha, causal=causal)
    (wanted,) = torch.autograd.grad(output, exact[2], gradient.double())
    near = 10.0 * tolerance(alpha)
    torch.testing.assert_close(who["ours"]().double(), wanted, rtol=near, atol=near)  # type: ignore[attr-defined]
    return who | {"tiles": through(lambda: tiles(*leaves, alpha, causal))} if slow else who


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--alpha", type=float, nargs="+", default=[1.5, 2.0])
    options.add_argument("--shape", type=int, help="only this one of the shapes")
    chosen = options.parse_args()
    print(machine())
    torch.set_num_threads(ss.get_num_threads())
    ratios = Ratios("Sparse attention with all statistics", limits=())
    turns = 3 if chosen.quick else 7
    shapes = SHAPES if chosen.shape is None else [SHAPES[chosen.shape]]
    for shape in shapes[::3] if chosen.quick else shapes:
        for causal in (False, True):
            for empty in EMPTY:
                given = inputs(shape, empty)
                for alpha in chosen.alpha:
                    share = measured(*given[:2], alpha, causal)
                    slow = empty == 0.0 and shape[2] <= 512  # tiles take seconds, whatever is empty
                    name = f"{shape_name(shape)}{' causal' if causal else ''}, {share:.0%} empty"
                    beyond = "> 60% empty" if share > 0.6 else "less"
                    times = best(forward(given, alpha, causal, slow), turns, slow=("tiles",))
                    ratios.add(f"forward {alpha:g}, {beyond}", name, times)
                    times = best(both_ways(given, alpha, causal, slow), turns, slow=("tiles",))
                    ratios.add(f"both ways {alpha:g}, {beyond}", name, times)
    finish(ratios, chosen.chart)


if __name__ == "__main__":
    main()
