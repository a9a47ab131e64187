"""What the tests of sharded context run on every rank. Every rank draws the same whole sequence."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

import softscope as ss
from softscope import bounds
from softscope import distributed as sd

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
READINGS = ("lse", "max_logit", "entropy", "collision", "peak", "variance", "jacobian_trace", "effective_support")


@dataclasses.dataclass
class Case:
    """A whole sequence, how it is cut, and the options of attention."""

    q: Tensor
    k: Tensor
    v: Tensor
    gradient: Tensor
    layout: Any
    lengths: list[int] | None = None  # of contiguous shards; None: as `shard` cuts
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def mine(self, x: Tensor) -> Tensor:
        """This rank's shard of a whole sequence."""
        if self.lengths is None:
            return sd.shard(x, layout=self.layout)
        return x.split(self.lengths, dim=-2)[dist.get_rank()].clone()

    def learned(self) -> dict[str, Any]:
        """The options, with fresh copies of those that have gradients."""
        return {name: x.clone().requires_grad_() if isinstance(x, Tensor) else x for name, x in self.options.items()}


def drawn(seed: int, ranks: int) -> Case:
    """A random case."""
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    dtype, layout = rng.choice(DTYPES), rng.choice(["contiguous", "zigzag"])
    heads, kv_heads = rng.choice([(1, 1), (2, 2), (4, 2), (6, 1)])
    batch = rng.choice([(), (1,), (2,), (2, 3)])
    lengths = None
    if layout == "contiguous" and rng.random() < 0.5:
        lengths = [rng.choice([0, 1, rng.randrange(40)]) for _ in range(ranks)]
    n, d, dv = sum(lengths) if lengths else rng.randrange(1, 150), rng.choice([1, 8, 20]), rng.choice([1, 8, 11])

    def tensor(*shape: int, factor: float = 1.0) -> Tensor:
        return (factor * torch.randn(shape, generator=generator)).to(dtype)

    options: dict[str, Any] = {"causal": rng.random() < 0.5}
    if rng.random() < 0.5:
        options["window"] = rng.choice([None, 0, 3, n // 2]), rng.choice([None, 0, 5, n])
    options["softcap"] = rng.choice([None, None, 3.0])
    options["scale"] = rng.choice([None, 0.3, torch.linspace(0.1, 1.0, heads, dtype=torch.float64)])
    options["sink"] = rng.choice([None, None, 0.5, torch.linspace(-1.0, 2.0, heads, dtype=torch.float64)])
    return Case(
        tensor(*batch, heads, n, d, factor=2.0),
        tensor(*batch, kv_heads, n, d),
        tensor(*(batch if rng.random() < 0.8 else batch[len(batch) :]), kv_heads, n, dv),
        tensor(*batch, heads, n, dv),
        layout,
        lengths,
        options,
    )


def wrong(case: Case) -> list[str]:
    """What differs from one process in float64 by more than one process in the same dtype may."""
    dtype = case.q.dtype
    want, statistics, slopes = _alone(case, torch.float64)
    rounded = _alone(case, dtype)[2]
    learned, shards = case.learned(), [case.mine(x).requires_grad_() for x in (case.q, case.k, case.v)]
    got, mine = sd.attention(*shards, layout=case.layout, return_partition=True, **learned)
    inputs = [*shards, *(x for x in learned.values() if isinstance(x, Tensor))]
    found = torch.autograd.grad(got, inputs, case.mine(case.gradient))

    half = dtype in (torch.float16, torch.bfloat16)
    computed = torch.float32 if half else dtype
    told = []

    def compare(name: str, a: Tensor, b: Tensor, allowed: float) -> None:
        last = bounds.unit_roundoff(dtype) * b.abs() if half else 0.0  # 16 bits: a single rounding, at the end
        off = (a.detach().double() - b).abs() - allowed - last
        if a.shape != b.shape or not bool((off <= 0).all()):
            told.append(f"{name}: {tuple(a.shape)}, {tuple(b.shape)}, off by {off.max() + 0}")

    def roundings(many: int, *like: Tensor) -> float:
        return many * bounds.unit_roundoff(computed) * max([1.0, *(float(x.abs().max()) for x in like if x.numel())])

    compare("output", got, case.mine(want), roundings(64, case.v))
    alone = sd.attention(*shards, layout=case.layout, **learned)
    compare("output without partition", alone, case.mine(want), roundings(64, case.v))
    for i, (a, b) in enumerate(zip(found, slopes, strict=True)):
        own = float((rounded[i].double() - b).abs().max()) if b.numel() else 0.0
        if i >= 3:
            dist.all_reduce(a)  # every rank has the share of its own queries
        compare(f"gradient {i}", a, case.mine(b) if i < 3 else b, 2.0 * own + roundings(256, b))
    if not torch.equal(mine.count, case.mine(statistics.count[..., None])[..., 0]):
        told.append("count")
    for name in READINGS:
        a, b = getattr(mine, name), case.mine(getattr(statistics, name)[..., None])[..., 0]
        off = (a - b).abs() / b.abs().clamp(min=1.0)
        if not bool(((off < 10 * bounds.readings(computed)) | (a == b) | (a.isnan() & b.isnan())).all()):
            told.append(f"{name}: off by {off.max()}")
    return told


def _alone(case: Case, dtype: torch.dtype) -> tuple[Tensor, Any, tuple[Tensor, ...]]:
    """One process: the output, its partition, and the gradients of all that has one."""
    whole, learned = [x.to(dtype, copy=True).requires_grad_() for x in (case.q, case.k, case.v)], case.learned()
    out, statistics = ss.attention(*whole, return_partition=True, **learned)
    inputs = [*whole, *(x for x in learned.values() if isinstance(x, Tensor))]
    return out.detach(), statistics, torch.autograd.grad(out, inputs, case.gradient.to(dtype))


def many_wrong(first: int, count: int) -> list[str]:
    """The same for random cases."""
    told = []
    for seed in range(first, first + count):
        case = drawn(seed, dist.get_world_size())
        about = f"seed {seed}, {case.q.dtype}, {case.layout}, {case.lengths}, {tuple(case.q.shape)}, {case.options}"
        told += [f"{about}: {one}" for one in wrong(case)]
    return told


def long_rows(dtype: torch.dtype) -> list[str]:
    """The same for rows that are longer than the kernels' blocks."""
    generator = torch.Generator().manual_seed(5)
    q, k, v, gradient = (torch.randn(1, 2, 1500, 64, generator=generator).to(dtype) for _ in range(4))
    cases = [
        Case(q, k, v, gradient, layout, None, {"causal": causal})
        for causal, layout in ((True, "zigzag"), (False, "contiguous"))
    ]
    return [one for case in cases for one in wrong(case)]
