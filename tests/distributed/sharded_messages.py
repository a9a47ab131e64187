"""What the tests of messages and refusals run on every rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

import softscope as ss
import softscope.distributed as sd
from softscope.distributed import _sums, counting, traffic


def logits(dtype: torch.dtype = torch.float32, rows: int = 6, n: int = 5) -> Tensor:
    """This rank's part, one entry longer on each rank."""
    return torch.randn((rows, n + dist.get_rank()), generator=torch.Generator().manual_seed(dist.get_rank())).to(dtype)


def sent(dtype: torch.dtype, rows: int) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """For each function: messages and bytes of its second call and backward pass; as counted, and as they should be."""
    targets = torch.arange(rows)
    calls: dict[str, Callable[[Tensor], Any]] = {
        "softmax": lambda x: sd.softmax(x).square().sum(),
        "log_softmax": lambda x: sd.log_softmax(x).square().sum(),
        "logsumexp": lambda x: sd.logsumexp(x).sum(),
        "cross_entropy": lambda x: sd.cross_entropy(x, targets),
        "partition": lambda x: sd.partition(x).entropy.sum(),
    }
    found = []
    for name, call in calls.items():
        x = logits(dtype, rows, n=rows).requires_grad_()
        call(x).backward()
        with counting.counted() as forward:
            loss = call(x)
        with counting.counted() as backward:
            loss.backward()
        rule: dict[str, Any] = {"rows": rows, "ranks": dist.get_world_size(), "dtype": dtype}
        formula = [traffic.bytes_sent(name, **rule, backward=way) for way in (False, True)]  # type: ignore[arg-type]
        counted = (forward.messages, forward.bytes, backward.messages, backward.bytes)
        found.append((name, counted, (1, formula[0], int(formula[1] > 0), formula[1])))
    sd.cross_entropy(x, targets, label_smoothing=0.1)
    with counting.counted() as smoothed:
        sd.cross_entropy(x, targets, label_smoothing=0.1)
    formula = [traffic.bytes_sent("cross_entropy", **rule, smoothed=True)]
    found.append(("smoothed", (smoothed.messages, smoothed.bytes), (1, formula[0])))
    return found


def changing() -> list[tuple[int, bool]]:
    """The messages of calls whose rows and parts change, and whether they are right: with classes that move, too."""
    group = dist.new_group()  # a group without a past
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found = []
    for rows, shift in ((3, 0), (3, 0), (7, 0), (7, 0), (2, 0), (2, 1), (2, 1), (3, 0)):
        whole = torch.randn((rows, 4 * ranks + 2), generator=torch.Generator().manual_seed(rows))
        ends = [0, *(4 * r + shift for r in range(1, ranks)), whole.shape[-1]]
        x = whole[:, ends[rank] : ends[rank + 1]]
        targets = (torch.arange(rows) * 2 + 3) % whole.shape[-1]
        with counting.counted() as counted:
            loss = sd.cross_entropy(x, targets, group=group)
        found.append(
            (counted.messages, math.isclose(float(loss), float(ss.cross_entropy(whole, targets)), rel_tol=1e-6))
        )
    return found


def told(call: Callable[[], Any]) -> str:
    """What a call raises."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def refusals() -> dict[str, str]:
    """What this rank is told if the last rank's arguments do not fit; a good call follows each, and must succeed."""
    last = dist.get_rank() == dist.get_world_size() - 1
    x, targets = logits(), torch.arange(6)
    total = sum(5 + rank for rank in range(dist.get_world_size()))
    wide = logits(rows=7)
    outside = torch.tensor([0, 1, 2, 3, 4, total])

    def entropy(**last_ones: Any) -> Callable[[], Any]:
        given = {"logits": x, "targets": targets} | (last_ones if last else {})
        return lambda: sd.cross_entropy(given.pop("logits"), given.pop("targets"), **given)

    calls: dict[str, Callable[[], Any]] = {
        "rows": lambda: sd.softmax(wide if last else x),
        "axes": lambda: sd.softmax(x[None] if last else x),
        "dtype": lambda: sd.logsumexp(x.double() if last else x),
        "temperature": lambda: sd.log_softmax(x, temperature=2.0 if last else 1.0),
        "a bad temperature": lambda: sd.partition(x, temperature=-1.0 if last else 1.0),
        "a list": lambda: sd.softmax([1.0, 2.0] if last else x),
        "complex": lambda: sd.logsumexp(x + 1j if last else x),
        "a number": lambda: sd.partition(torch.tensor(1.0) if last else x),
        "gradient": lambda: sd.softmax(x.clone().requires_grad_() if last else x),
        "keepdims": lambda: sd.logsumexp(x, keepdims=1 if last else True),
        "reduction": entropy(reduction="sum"),
        "a bad reduction": entropy(reduction="median"),
        "smoothing": entropy(label_smoothing=0.1),
        "ignored": entropy(ignore_index=1),
        "targets": entropy(targets=targets.flip(0)),
        "their shape": entropy(targets=targets[:5]),
        "their dtype": entropy(targets=targets.double()),
        "a target too high": lambda: sd.cross_entropy(x, outside),
        "a target too low": lambda: sd.cross_entropy(x, outside - total - 1),
        "only one too high": entropy(targets=outside),
    }
    found = {}
    for name, call in calls.items():
        found[name] = told(call)
        for _ in range(2):
            good = (
                sd.softmax(x).sum(),
                sd.log_softmax(x),
                sd.logsumexp(x),
                sd.cross_entropy(x, targets),
                sd.partition(x),
            )
            assert bool(torch.isfinite(good[3]))
    return found


def running_out_of_memory() -> list[str]:
    """What a rank is told if the last one cannot compute its sums: in a group's first call, and after a good one."""
    last, group, x = dist.get_rank() == dist.get_world_size() - 1, dist.new_group(), logits()
    whole, found = _sums.of_part, []

    def fails(*_: Any) -> Any:
        raise MemoryError("no memory for the sums")

    for _ in range(2):
        if last:
            _sums.of_part = fails
        try:
            sd.softmax(x, group=group)
        except (MemoryError, sd.RanksDifferError) as error:
            found.append(f"{type(error).__name__}: {error}")
        finally:
            _sums.of_part = whole
        sd.softmax(x, group=group)
    return found


def outsiders() -> str:
    """What the last rank is told by a group of the others, who work on."""
    inside = list(range(dist.get_world_size() - 1))
    group = dist.new_group(inside)
    x = logits()
    return told(lambda: sd.softmax(x, group=group))


def second_derivatives() -> list[str]:
    """What create_graph is told, by function."""
    x, targets = logits(torch.float64).requires_grad_(), torch.arange(6)
    calls = (
        lambda: sd.softmax(x).square().sum(),
        lambda: sd.log_softmax(x).square().sum(),
        lambda: sd.logsumexp(x).sum(),
        lambda: sd.cross_entropy(x, targets),
        lambda: sd.partition(x).entropy.sum(),
    )
    found = []
    for call in calls:
        try:
            torch.autograd.grad(call(), x, create_graph=True)
        except NotImplementedError as error:
            found.append(str(error))
    return found


def transforms() -> list[str]:
    """What transforms of torch.func are told."""
    x, found = logits(), []
    for transformed in (torch.func.grad(lambda y: sd.logsumexp(y).sum()), torch.vmap(sd.softmax)):
        try:
            transformed(x)
        except NotImplementedError as error:
            found.append(str(error))
    return found


def compiled() -> bool:
    """Whether compiled code has the same loss and gradient."""
    targets = torch.arange(6)

    def loss(x: Tensor) -> Tensor:
        return 3.0 * sd.cross_entropy(2.0 * x, targets) + sd.softmax(x).square().sum()

    found = []
    for function in (loss, torch.compile(loss, backend="eager")):
        x = logits(torch.float64).requires_grad_()
        result = function(x)
        result.backward()
        assert x.grad is not None
        found.append((result.detach(), x.grad))
    return all(torch.allclose(one, other, rtol=1e-12) for one, other in zip(*found, strict=True))
