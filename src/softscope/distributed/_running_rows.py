"""Rows of attention whose keys come in blocks: the output and the partition of the keys so far.

out = Σ share·out of the block      share = z_block·exp(m_block − m)/z
"""

from __future__ import annotations

import torch
from torch import Tensor

from softscope._backends.engine.attention import STATE_NUMBERS
from softscope._backends.reference.partition import State
from softscope._backends.torch.dtypes import widest
from softscope._partition import Partition


class RunningRows:
    """The rows (…, heads, n) of queries q over the blocks that were added; at first, over no key."""

    def __init__(self, q: Tensor, rows: tuple[int, ...], dv: int) -> None:
        self.out = q.new_zeros((*rows, dv))
        # n, c, m, r, u, t, w and the largest score, in the engine's order
        self.numbers = q.new_zeros((STATE_NUMBERS, *rows), dtype=widest(q))
        self.numbers[2] = self.numbers[7] = -torch.inf

    def add(self, rows: slice, out: Tensor, state: State, highest: Tensor) -> None:
        """Join what a block of keys gives to some of the rows."""
        before, block = _partition(self.numbers[..., rows]), Partition(state, highest)
        both = before.merge(block)
        total = both.state.c + both.state.r
        kept, added = (_share(part.state, both.state.m, total).to(out.dtype) for part in (before, block))
        self.out[..., rows, :].mul_(kept[..., None]).addcmul_(out, added[..., None])
        for i, number in enumerate((*both.state, both.highest)):
            self.numbers[i, ..., rows] = number

    def join_sink(self, sink: Tensor) -> None:
        """Let a sink of each head, (heads,), take its share of the weight."""
        _, c, m, r, *_ = self.numbers
        z = c + r
        share = torch.where(z == 0.0, 0.0, z / (z + torch.exp(sink[:, None] - m)))
        self.out *= share[..., None].to(self.out.dtype)

    def numbers_last(self) -> Tensor:
        """Return the numbers as (…, heads, n, 8)."""
        return self.numbers.movedim(0, -1).contiguous()


def _partition(numbers: Tensor) -> Partition:
    n, *others, highest = numbers
    return Partition(State(n, *others), highest)


def _share(part: State, m: Tensor, total: Tensor) -> Tensor:
    return torch.where(total == 0.0, 0.0, (part.c + part.r) * torch.exp(part.m - m) / total)
