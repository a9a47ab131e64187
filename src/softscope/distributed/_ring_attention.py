"""The two passes of sharded attention around the ring, as one operation for autograd.

Forward: every rank computes its queries against the block at hand, while the next block is on its way. Backward: the
blocks travel again, and behind each of them the sum of its gradients, to which every rank adds its share.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softscope._arguments.attention import Call, Options
from softscope._backends.torch import part_of_keys
from softscope._backends.torch.engine_attention import rows_of, sink_gradient
from softscope.distributed._layout import indices
from softscope.distributed._ring import GRADIENTS, KEYS, Passing, Plan
from softscope.distributed._running_rows import RunningRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.distributed import ProcessGroup


@dataclasses.dataclass(frozen=True)
class How:
    """The ring, this rank's place in it, and the options that are no tensors."""

    group: ProcessGroup
    rank: int
    plan: Plan
    softcap: float | None
    statistics: bool  # whether the rows' numbers are wanted in full

    def source(self, hop: int) -> int:
        """Return whose block is at hand after some hops; before the first, it is this rank's own."""
        return (self.rank - hop) % len(self.plan.held)

    def keys_of(self, rank: int) -> int:
        """Return how many keys a rank holds."""
        return sum(map(len, self.plan.held[rank]))


class Blocks:
    """The blocks of keys and values as they come by; the next one travels while the caller works on one."""

    def __init__(self, k: Tensor, v: Tensor, how: How) -> None:
        self._shapes = k.shape, v.shape
        self._how = how
        self._own = k, v

    def __iter__(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield the hops so far, and the keys and values at hand."""
        how, hops = self._how, self._how.plan.hops
        block = joined(*self._own) if hops else None
        for hop in range(hops + 1):
            passing = None
            if hop < hops:
                assert block is not None
                size = self.size(how.source(hop + 1))
                passing = Passing(block, (how.rank + 1) % how.group.size(), size, how.source(1), how.group, KEYS)
            yield hop, *(self._own if block is None else self.split(block, how.source(hop)))
            block = None if passing is None else passing.arrived()

    def size(self, rank: int) -> int:
        """Return how many numbers a rank's keys and values are."""
        return sum(map(math.prod, self._of(rank)))

    def split(self, block: Tensor, rank: int) -> tuple[Tensor, Tensor]:
        """Take the keys and values of a rank, or their gradients, out of the one message that they travel in."""
        of_k, of_v = self._of(rank)
        many = math.prod(of_k)
        return block[:many].view(of_k), block[many:].view(of_v)

    def _of(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        m = self._how.keys_of(rank)
        of_k, of_v = ((*shape[:-2], m, shape[-1]) for shape in self._shapes)
        return of_k, of_v


def joined(k: Tensor, v: Tensor) -> Tensor:
    """Copy keys and values into one message."""
    return torch.cat([k.reshape(-1), v.reshape(-1)])


def computed_in(x: Tensor) -> torch.dtype:
    """Return the dtype of blocks' results: 16 bits are too few to add them up."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def _calls(
    q: Tensor, block: tuple[int, Tensor, Tensor], options: Options, how: How
) -> Iterator[tuple[slice, slice, Call]]:
    """Yield the rows and keys of a block that see each other, with their call."""
    hop, k, v = block
    for rows, keys, first in how.plan.parts(how.rank, how.source(hop), q.shape[-2]):
        positions = options.positions[rows] - first
        part = k[..., keys, :].to(q.dtype), v[..., keys, :].to(q.dtype)
        yield rows, keys, Call(q[..., rows, :], *part, dataclasses.replace(options, positions=positions))


def _options(q: Tensor, scale: Tensor, sink: Tensor | None, how: How) -> Options:
    held, limited = how.plan.held[how.rank], how.plan.left is not None or how.plan.right is not None
    return Options(
        scale=scale[:, None, None],
        positions=indices(held if limited else [range(q.shape[-2])], q.device),
        left=how.plan.left,
        right=how.plan.right,
        softcap=how.softcap,
        sink=None if sink is None else sink[:, None],
    )


class RingAttention(torch.autograd.Function):
    """q, k, v, one scale and one sink per head, how → the output, and every row's numbers."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: Tensor, sink: Tensor | None, how: How
    ) -> tuple[Tensor, Tensor]:
        queries, options = q.to(computed_in(q)), _options(q, scale, None, how)
        running = RunningRows(queries, rows_of(q, k, v), v.shape[-1])
        for block in Blocks(k, v, how):
            for rows, _, call in _calls(queries, block, options, how):
                running.add(rows, *part_of_keys.attended(call, how.statistics))
        if sink is not None:
            running.join_sink(sink)
        out, numbers = running.out.to(q.dtype), running.numbers_last()
        ctx.mark_non_differentiable(numbers)
        ctx.save_for_backward(q, k, v, scale, sink, out, numbers)
        ctx.how = how
        return out, numbers

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "attention over several ranks has first derivatives only, but got create_graph=True; leave it out"
            )
        q, k, v, scale, sink, out, numbers = ctx.saved_tensors
        how: How = ctx.how
        dtype, wide, options = q.dtype, computed_in(q), _options(q, scale, sink, how)
        q, gradient, out = (x.to(wide) for x in (q, gradient, out))
        dq, dscale = torch.zeros_like(q), torch.zeros_like(scale)
        blocks = Blocks(k, v, how)
        sums = _Homecoming(blocks, how)
        for block in blocks:
            found = joined(*(torch.zeros_like(x, dtype=wide) for x in block[1:]))
            dk, dv = blocks.split(found, how.source(block[0]))
            for rows, keys, call in _calls(q, block, options, how):
                of_rows = (x[..., rows, :] for x in (gradient, out, numbers))
                of_q, of_k, of_v, of_scale = part_of_keys.gradients(call, *of_rows)
                dq[..., rows, :] += of_q
                dk[..., keys, :] += of_k
                dv[..., keys, :] += of_v
                dscale += of_scale
            sums.add(block[0], found)
        dk, dv = blocks.split(sums.home(), how.rank)
        of_sink = None if sink is None else sink_gradient(gradient, out, numbers, sink)
        return dq.to(dtype), dk.to(dtype), dv.to(dtype), dscale, of_sink, None


class _Homecoming:
    """The sums of the blocks' gradients: each follows its block, and goes home from the last rank that added to it."""

    def __init__(self, blocks: Blocks, how: How) -> None:
        self._blocks, self._how = blocks, how
        self._passing: Passing | None = None
        self._own: Tensor | None = None

    def add(self, hop: int, found: Tensor) -> None:
        """Add this rank's share to the sum of the block at hand, and pass it on."""
        how, ranks = self._how, self._how.group.size()
        total = found if self._passing is None else self._passing.arrived().add_(found)
        if how.plan.hops == 0:
            self._own = total
        elif hop < how.plan.hops:
            size = self._blocks.size(how.source(hop + 1))
            self._passing = Passing(total, (how.rank + 1) % ranks, size, how.source(1), how.group, GRADIENTS)
        else:
            size, last = self._blocks.size(how.rank), (how.rank + hop) % ranks
            self._passing = Passing(total, how.source(hop), size, last, how.group, GRADIENTS)

    def home(self) -> Tensor:
        """Wait for the sum of this rank's own block."""
        if self._own is not None:
            return self._own
        assert self._passing is not None
        return self._passing.arrived()
