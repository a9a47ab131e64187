"""What the tests of sharded rows run on every rank: each builds the whole rows from a seed, and takes its part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

import softscope as ss
import softscope.distributed as sd
from softscope import bounds

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
READINGS = ("lse", "entropy", "collision", "peak", "variance", "jacobian_trace", "max_logit", "count", "sharpness")


def cuts(n: int, generator: np.random.Generator) -> list[slice]:
    """Uneven parts of n entries, one for each rank in the group of all; some are empty."""
    inner = np.sort(generator.integers(0, n + 1, dist.get_world_size() - 1)).tolist()
    return [slice(a, b) for a, b in itertools.pairwise([0, *inner, n])]


def rows(generator: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Logits of all kinds: flat, wide, next to one-hot, far from 0, tied, and with a logsumexp next to 0."""
    kind = int(generator.integers(0, 6))
    x = generator.normal(size=shape) * (0.1, 6.0, 1.0, 1.0, 3.0, 1.0)[kind]
    if kind == 2:
        x[..., int(generator.integers(0, shape[-1]))] += generator.choice([12.0, 25.0, 60.0])
    if kind == 3:
        x += generator.choice([-300.0, 900.0])
    if kind == 4:
        x = np.round(x)
    if kind == 5:
        x -= 18.0
        x[..., int(generator.integers(0, shape[-1]))] = 0.0
    return torch.tensor(x)


def mine(x: Tensor, parts: list[slice]) -> Tensor:
    """This rank's part, as a tensor of its own."""
    return x[..., parts[dist.get_rank()]].clone()


def values(seeds: range) -> tuple[int, list[str]]:
    """Compare all functions with long doubles; return how many numbers were compared, and what missed its bound."""
    wrong: list[str] = []
    many = 0

    def check(what: str, got: Tensor, want: np.ndarray, allowed: np.ndarray) -> None:
        nonlocal many
        error = np.abs(got.double().numpy().astype(np.longdouble) - want)
        many += error.size
        if not (error <= allowed).all():
            wrong.append(f"{what}: {float((error / allowed).max()):.3g} times the bound")

    for seed in seeds:
        generator = np.random.default_rng(seed)
        lead = ((), (3,), (2, 5))[int(generator.integers(0, 3))]
        n = int(generator.integers(1, 400))
        parts = cuts(n, generator)
        dtype = DTYPES[seed % 4]
        temperature = float(generator.choice([1.0, 0.5, 3.0]))
        whole = rows(generator, (*lead, n)).to(dtype)
        targets = torch.tensor(generator.integers(0, n, lead))
        x, here = mine(whole, parts), parts[dist.get_rank()]
        name = f"seed {seed}, {dtype}, T {temperature}"

        exact = whole.double().numpy().astype(np.longdouble)
        m = exact.max(axis=-1, keepdims=True)
        d = (exact - m) / temperature
        e = np.exp(d)
        rest = np.where(d == 0.0, 0.0, e).sum(axis=-1, keepdims=True) + ((d == 0.0).sum(axis=-1, keepdims=True) - 1)
        log_z, z = np.log1p(rest), 1.0 + rest
        mean_distance = -(e * d).sum(axis=-1, keepdims=True) / z

        def within(result: np.ndarray, top: np.ndarray, log: np.ndarray, mean: np.ndarray, dtype: Any) -> np.ndarray:
            bound = bounds.logsumexp_in_its_own_width if dtype == torch.float64 else bounds.logsumexp
            few = 4 if dtype == torch.float64 else 2
            numbers = np.broadcast_arrays(result, top, log, mean)
            flat = zip(*(part.reshape(-1).tolist() for part in numbers), strict=True)
            return np.array([bound(*given[:few], dtype) for given in flat]).reshape(numbers[0].shape)

        p = e / z
        small = 2.0**-14 if dtype == torch.float16 else 2.0**-126
        slope = -d if temperature == 1.0 else -3.0 * d
        allowed = p * bounds.unit_roundoff(dtype) * (5.0 + slope) + bounds.ulp(small, dtype)
        check(f"{name}: softmax", sd.softmax(x, temperature=temperature), p[..., here], allowed[..., here])
        top = m / temperature
        y = d - log_z
        allowed = within(y[..., here], top, log_z, mean_distance, dtype)
        check(f"{name}: log_softmax", sd.log_softmax(x, temperature=temperature), y[..., here], allowed)
        lse, sizes = (top + log_z)[..., 0], [part[..., 0] for part in (top, log_z, mean_distance)]
        check(f"{name}: logsumexp", sd.logsumexp(x, temperature=temperature), lse, within(lse, *sizes, dtype))
        loss = -np.take_along_axis(y, np.asarray(targets)[..., None], axis=-1)[..., 0]
        got = sd.cross_entropy(x, targets, temperature=temperature, reduction="none")
        check(f"{name}: cross_entropy", got, loss, within(loss, *sizes, dtype))
        found = sd.partition(x, temperature=temperature)
        entropy = (log_z + mean_distance)[..., 0]
        collision = (e * e).sum(axis=-1) / z[..., 0] ** 2
        trace = (p * np.where(p < 0.5, 1.0 - p, (z - e) / z)).sum(axis=-1)
        for reading, want in (("entropy", entropy), ("collision", collision), ("jacobian_trace", trace)):
            allowed = bounds.readings(dtype) * np.abs(want) + 1e-30
            if reading != "jacobian_trace" or float(p.max()) < 1.0 - 1e-6:  # long doubles cancel, too
                check(f"{name}: {reading}", getattr(found, reading), want, allowed)
        check(f"{name}: count", found.count, np.full(lead, n), np.zeros(lead) + 0.5)
    return many, wrong


def losses(module: Any, options: dict[str, Any], targets: Tensor, v: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """A loss of each function, the same everywhere; `v` is cut like x."""

    def readings(x: Tensor) -> Tensor:
        found = module.partition(x, **options)
        return sum((getattr(found, name).sin().sum() for name in READINGS[:7]), torch.zeros(()))

    return {
        "logsumexp": lambda x: module.logsumexp(x, **options).sin().sum(),
        "mean": lambda x: module.cross_entropy(x, targets, ignore_index=1, **options),
        "none": lambda x: (
            module.cross_entropy(x, targets, label_smoothing=0.1, reduction="none", **options).sin().sum()
        ),
        "partition": readings,
        "softmax": lambda x: (module.softmax(x, **options) * v).sum(),
        "log_softmax": lambda x: (module.log_softmax(x, **options) * v).sum(),
    }


def gradients(seeds: range) -> tuple[int, list[str]]:
    """Compare the gradients with those of one process; return how many, and which differ."""
    wrong, many = [], 0
    for seed in seeds:
        generator = np.random.default_rng(seed)
        lead = ((), (4,), (2, 3))[seed % 3]
        n = int(generator.integers(2, 120))
        parts = cuts(n, generator)
        dtype = DTYPES[seed % 4]
        options = {"temperature": float(generator.choice([1.0, 0.5, 3.0]))}
        whole = rows(generator, (*lead, n)).to(dtype)
        v = torch.tensor(generator.normal(size=whole.shape) + generator.choice([0.0, 100.0])).to(dtype)
        targets = torch.tensor(generator.integers(0, n, lead))
        here = parts[dist.get_rank()]
        one, many_ranks = losses(ss, options, targets, v), losses(sd, options, targets, v[..., here])
        for name, loss in one.items():
            x, part = whole.clone().requires_grad_(), mine(whole, parts).requires_grad_()
            loss(x).backward()
            many_ranks[name](part).backward()
            assert x.grad is not None
            assert part.grad is not None
            want, got = x.grad.double(), part.grad.double()
            # Relative to the row's largest: next to one-hot all of them are small.
            largest = want.abs().amax(dim=-1, keepdim=True)
            half = dtype in (torch.bfloat16, torch.float16)
            allowed = largest * (16.0 * bounds.unit_roundoff(dtype) if half else 2.0 * bounds.readings(dtype)) + 1e-300
            if dtype == torch.float16:
                allowed = allowed + 2.0**-23
            if name == "log_softmax":  # the rounding of y is the relative error of p = exp(y)
                y = ss.log_softmax(whole.double(), **options)
                moved = y.exp() * v.double().sum(dim=-1, keepdim=True).abs() / options["temperature"]
                allowed = allowed + 4.0 * bounds.unit_roundoff(dtype) * (1.0 - y) * moved
            many += got.numel()
            if (
                got.shape != want[..., here].shape
                or not ((got - want[..., here]).abs() <= allowed.expand(want.shape)[..., here]).all()
            ):
                worst = ((got - want[..., here]).abs() / allowed.expand(want.shape)[..., here]).max()
                wrong.append(f"seed {seed}, {dtype}, {name}: {float(worst):.3g} times what is allowed")
    return many, wrong


def special() -> tuple[int, list[str]]:
    """Rows with NaN and infinities, which may lie in one part alone, against one process."""
    inf, nan = math.inf, math.nan
    ranks = dist.get_world_size()
    base = [0.5, -1.0, 2.0, 0.25] * ranks
    wrong, many = [], 0
    ways: dict[str, dict[int, float]] = {
        "nan": {1: nan}, "nan in the last part": {-1: nan}, "inf": {2: inf}, "inf twice": {0: inf, -1: inf},
        "inf and nan": {0: inf, -1: nan}, "-inf": {0: -inf, -2: -inf}, "a part of -inf": dict.fromkeys(range(4), -inf),
        "all -inf": dict.fromkeys(range(4 * ranks), -inf), "one is left": dict.fromkeys(range(1, 4 * ranks), -inf),
        "large": {0: 3e38, -1: -3e38},
    }  # fmt: skip
    for (name, changes), dtype, temperature in itertools.product(ways.items(), DTYPES[:2], (1.0, 0.5)):
        row = list(base)
        for place, value in changes.items():
            row[place] = value
        whole = torch.tensor([row, base], dtype=dtype)
        parts = [slice(4 * rank, 4 * rank + 4) for rank in range(ranks)]
        here, x = parts[dist.get_rank()], mine(whole, parts)
        options: dict[str, Any] = {"temperature": temperature}
        targets = torch.tensor([2, 2])
        pairs = {
            "softmax": (sd.softmax(x, **options), ss.softmax(whole, **options)[:, here]),
            "log_softmax": (sd.log_softmax(x, **options), ss.log_softmax(whole, **options)[:, here]),
            "logsumexp": (sd.logsumexp(x, **options), ss.logsumexp(whole, **options)),
        }
        # In float64, one process calls the smoothed loss of a row with −inf NaN, not inf.
        for smoothing in (0.0, 0.1) if dtype == torch.float32 else (0.0,):
            given = options | {"label_smoothing": smoothing, "reduction": "none"}
            pairs[f"cross_entropy, {smoothing}"] = (
                sd.cross_entropy(x, targets, **given), ss.cross_entropy(whole, targets, **given)
            )  # fmt: skip
        here_, one = sd.partition(x, **options), ss.partition(whole, **options)
        pairs |= {reading: (getattr(here_, reading), getattr(one, reading)) for reading in READINGS}
        for function, (got, want) in pairs.items():
            many += 1
            if not torch.allclose(got.double(), want.double(), rtol=1e-6, atol=0.0, equal_nan=True):
                wrong.append(f"{name}, {dtype}, T {temperature}, {function}: {got.tolist()}, not {want.tolist()}")
    return many, wrong


def reduced_bits() -> list[bytes]:
    """What every rank must have in the same bits."""
    generator = np.random.default_rng(5)
    whole = rows(generator, (6, 300))
    found = []
    for dtype in DTYPES:
        x = mine(whole.to(dtype), cuts(300, generator))
        targets = torch.tensor(generator.integers(0, 300, 6))
        results = [sd.logsumexp(x), sd.cross_entropy(x, targets), *sd.partition(x).state]
        found += [bytes(result.reshape(-1).clone().view(torch.uint8).tolist()) for result in results]
    return found


def losses_with_options() -> list[list[float]]:
    """Pairs of losses that must agree: ours, and one process'."""
    generator = np.random.default_rng(1)
    whole = rows(generator, (8, 40))
    x = mine(whole, cuts(40, generator))
    targets = torch.tensor(generator.integers(0, 40, 8))
    targets[2] = targets[5] = -100
    some = targets.clone()
    some[targets == -100] = 7
    pairs = []
    for options in (
        {}, {"reduction": "sum"}, {"label_smoothing": 0.25}, {"label_smoothing": 1.0}, {"temperature": 2.5},
    ):  # fmt: skip
        both = (sd.cross_entropy(x, targets, **options), ss.cross_entropy(whole, targets, **options))
        pairs.append([float(loss) for loss in both])
    both = (sd.cross_entropy(x, some, ignore_index=7), ss.cross_entropy(whole, some, ignore_index=7))
    pairs.append([float(loss) for loss in both])
    nothing = torch.full((8,), -100)
    pairs.append([float(sd.cross_entropy(x, nothing)), 0.0])
    return pairs


def slope_of_an_ignored_row(ignored: float) -> list[float]:
    """The largest gradient in each of two rows of which the first is ignored, and holds what it should not."""
    x = torch.full((2, 3), 0.5)
    x[0] = ignored
    x.requires_grad_()
    sd.cross_entropy(x, torch.tensor([-100, 1])).backward()
    assert x.grad is not None
    return x.grad.abs().amax(dim=-1).tolist()


def nothing_there() -> list[str]:
    """What differs from one process where there are no rows, or no entries on any rank."""
    wrong = []
    for shape in ((0, 4), (2, 0), (0, 0)):
        x, whole = torch.zeros(shape).requires_grad_(), torch.zeros((shape[0], shape[1] * dist.get_world_size()))
        targets = torch.full((shape[0],), -100)
        results = {
            name: (getattr(sd, name)(x), getattr(ss, name)(whole)) for name in ("logsumexp", "softmax", "log_softmax")
        }
        results["partition"] = sd.partition(x).lse, ss.partition(whole).lse
        results["cross_entropy"] = sd.cross_entropy(x, targets), ss.cross_entropy(whole, targets)
        for name, (got, want) in results.items():
            if name in ("softmax", "log_softmax"):
                want = want[..., : shape[1]]
            if got.shape != want.shape or not torch.allclose(got.double(), want.double(), equal_nan=True):
                wrong.append(f"{shape}, {name}: {got}, not {want}")
            got.sum().backward()
        assert x.grad is not None
        if x.grad.shape != shape:
            wrong.append(f"{shape}: gradient {x.grad.shape}")
    return wrong
