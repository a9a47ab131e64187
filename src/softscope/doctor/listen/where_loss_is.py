"""Which rows the loss cares about, found from the gradient: a classifier may read one token, a chat model an answer."""

from __future__ import annotations

import random
from collections.abc import Sequence

from torch import Tensor

FEW = 0.5  # if fewer of the sampled rows carry loss, rows that do are read as well


class WhereLossIs:
    """Remembers for each site where the last gradient was, and adds such rows to a sample that misses them."""

    def __init__(self, most: int | None, rng: random.Random) -> None:
        self._most, self._rng = most, rng
        self._rows: dict[str, list[int]] = {}
        self._pending: dict[str, tuple[list[int], Tensor]] = {}  # on another device, until the step is over

    def missed(self, name: str, sampled: Sequence[int], reached: Tensor) -> list[int]:
        """The rows to read: the sampled ones and those with loss, sorted; none if the sample has enough.

        Args:
            name: the site.
            sampled: the rows that were going to be read.
            reached: which rows have a gradient, (B, heads, n).
        """
        if self._most is None:
            return []
        sequences = reached.any(dim=1).sum(dim=0)  # with loss in this row
        if reached.device.type != "cpu":  # asking now would wait for the device
            self._pending[name] = list(sampled), sequences
            return []
        self._note(name, sampled, sequences)
        extra = set(self._rows.get(name, ())) - set(sampled)
        return sorted(extra.union(sampled)) if extra else []

    def settle(self) -> None:
        """Look at what came from other devices; the step is over, and its readings wait for them anyway."""
        for name, (sampled, sequences) in self._pending.items():
            self._note(name, sampled, sequences)
        self._pending.clear()

    def with_remembered(self, name: str, sampled: list[int], n: int) -> list[int]:
        """The sample, and the rows that had loss the last time."""
        known = self._rows.get(name)
        return sorted({*sampled, *(row for row in known if row < n)}) if known else sampled

    def _note(self, name: str, sampled: Sequence[int], sequences: Tensor) -> None:
        counts = sequences.tolist()
        carrying = [row for row, many in enumerate(counts) if many]
        in_sample = sum(1 for row in sampled if counts[row])
        if not carrying or in_sample >= FEW * len(sampled):
            self._rows.pop(name, None)
            return
        assert self._most is not None
        if len(carrying) > self._most:
            carrying = sorted(self._rng.sample(carrying, self._most))
        self._rows[name] = carrying


def reached_rows(grad: Tensor) -> Tensor:
    """Which rows of a gradient (B, heads, n, …) are not zero, (B, heads, n).

    >>> import torch
    >>> reached_rows(torch.tensor([[[[0.0, 0.0], [0.0, 0.5]]]]))
    tensor([[[False,  True]]])
    """
    return (grad != 0.0).any(dim=-1)
