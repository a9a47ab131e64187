"""The ways to spoil heads on purpose."""

from __future__ import annotations

import torch
from torch.nn import functional

from softscope._text import Text, same
from softscope.doctor.evaluation.projections import HeadMaps

TIMES = 30.0  # factor on q; and the shift of k, in norms of k

WAYS: dict[str, Text] = {
    "healthy": Text(zh="没有弄坏", en="not spoiled"),
    "high rate": Text(zh="学习率太高", en="too high a learning rate"),
    "no scale": Text(zh="没有 1/√d", en="no scale"),
    "scale 4": Text(zh="分数是 4·q·k", en="logits 4·q·k"),
    "q, k × 8": Text(zh="开始时 q、k × 8", en="q, k × 8 at the start"),
    "q × 30": same("q × 30"),
    "k shifted": Text(zh="k 移向一个固定方向", en="k shifted to a constant direction"),
}


@torch.no_grad()
def multiply_q(head: HeadMaps, generator: torch.Generator) -> None:
    """Multiply the head's q by 30."""
    del generator
    head.q.multiply(TIMES)


@torch.no_grad()
def shift_k(head: HeadMaps, generator: torch.Generator) -> None:
    """Push the head's keys along one direction, each in proportion to one component of its token.

    Shifting every key by the same amount would change nothing: softmax ignores a constant added to all its logits.
    """
    weight = head.k.weight
    size, d = weight.shape
    along = functional.normalize(torch.randn(size, generator=generator), dim=0)
    seen = functional.normalize(torch.randn(d, generator=generator), dim=0)
    length = float(torch.linalg.matrix_norm(weight))  # norm of a key, for tokens of unit variance
    weight.add_(TIMES * length * torch.outer(along, seen))
