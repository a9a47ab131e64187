"""How ranks exchange the numbers of their parts: one message a call, and no rank left waiting if another refuses.

All ranks send blocks of one size, which `torch.distributed` does not check: blocks of different sizes hang or mix up
numbers. So the size of a block never depends on what this rank alone knows. A block is a header and the numbers:

    header: a digest of what must be the same on every rank, how long this rank's rows are, whether it refuses

After a call every rank has seen every header. So all know how large the block of the function's next call will be: as
large as this one. If the shape or the lengths are new, the numbers follow in a second message, on all ranks alike.
Where ranks differ or one refuses, they exchange their reasons, and all raise.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import weakref
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from softscope.distributed._group import device_of
from softscope.distributed.traffic import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.distributed import ProcessGroup

Lengths = tuple[int, ...]  # of the rows' parts, by rank

_REASONS = 4096  # bytes in which a rank says what it has, once something differs
_LONGEST = 300  # characters of one fact


class Part(Protocol):
    """What a rank brings: facts that must be the same everywhere, its rows' length, and what it sends."""

    @property
    def facts(self) -> dict[str, str]:
        """What must be the same on every rank, by the names that users know."""

    @property
    def length(self) -> int:
        """How many entries of each row this rank has."""

    def numbers(self, lengths: Lengths) -> Sequence[Tensor]:
        """Given everybody's lengths: tensors of one axis, with one number for each row. It must not raise."""


P = TypeVar("P", bound=Part)


@dataclasses.dataclass(frozen=True)
class _Known:
    lengths: Lengths
    size: int


# What all ranks of a group have seen in the last call of each function.
_known: weakref.WeakKeyDictionary[ProcessGroup, dict[str, _Known]] = weakref.WeakKeyDictionary()


class RanksDifferError(ValueError):
    """Ranks of a group do not fit together. It is raised on all of them; one that refused its arguments says why.

    >>> issubclass(RanksDifferError, ValueError)
    True
    """


def exchange(group: ProcessGroup | None, name: str, prepare: Callable[[], P]) -> tuple[P, list[Tensor], Lengths]:
    """Return this rank's part, the numbers of all ranks in rank order, (ranks, rows) each, and the lengths.

    Without a group there is one part, and nothing is sent. What `prepare` raises reaches all ranks.
    """
    if group is None:
        part = prepare()
        return part, [sent.unsqueeze(0) for sent in part.numbers((part.length,))], (part.length,)
    calls = _known.setdefault(group, {})
    known = calls.get(name)
    try:
        part = prepare()
        # Also if nobody knows the lengths yet: what fails here must not fail after the ranks have agreed.
        sent = part.numbers(known.lengths if known else (part.length,) * group.size())
    except Exception as error:
        _gathered(_block([0, 0, 1], torch.empty(0, dtype=torch.uint8), known.size if known else 0), group)
        _gathered(_reasons({"": str(error)}), group)
        raise
    body = _packed(sent)
    blocks = _gathered(_block([_digest(part.facts), part.length, 0], body, known.size if known else 0), group)
    digests, lengths, refusals = _headers(blocks[:, :HEADER])
    if any(refusals) or len(set(digests)) > 1:
        raise _difference(_gathered(_reasons(part.facts), group))
    if known and known.lengths == lengths and body.numel() == known.size:
        return part, _unpacked(blocks[:, HEADER:], sent), lengths
    sent = part.numbers(lengths)
    body = _packed(sent)
    calls[name] = _Known(lengths, body.numel())
    return part, _unpacked(_gathered(body, group), sent), lengths


def _headers(blocks: Tensor) -> tuple[Lengths, ...]:
    """Digests, lengths and refusals, each by rank."""
    return tuple(zip(*_seen_as(torch.int64, blocks.cpu()).tolist(), strict=True))


def _block(header: list[int], body: Tensor, size: int) -> Tensor:
    """A header, and a body cut or filled up to the size."""
    head = torch.tensor(header).view(torch.uint8).to(body.device)
    return torch.cat([head, body[:size], body.new_zeros(max(size - body.numel(), 0))])


def _packed(numbers: Sequence[Tensor]) -> Tensor:
    parts = [_seen_as(torch.uint8, sent) for sent in numbers]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)


def _unpacked(blocks: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = torch.split(blocks, [sent.numel() * sent.itemsize for sent in like], dim=1)
    return [
        _seen_as(sent.dtype, part.flatten()).reshape((len(blocks), len(sent)))
        for part, sent in zip(parts, like, strict=True)
    ]


def _seen_as(dtype: torch.dtype, x: Tensor) -> Tensor:
    """The same bytes in another dtype; of a copy, as that begins where its dtype may begin, and has no gaps."""
    return x.clone(memory_format=torch.contiguous_format).view(dtype)


def _gathered(block: Tensor, group: ProcessGroup) -> Tensor:
    """Return the blocks of all ranks, (ranks, bytes), on the block's device."""
    ours = block.to(device_of(group))
    found = ours.new_empty((group.size(), ours.numel()))
    if ours.numel():
        # PyTorch 2.13 gave it a new name, and warns of the old one.
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        gather(found.view(-1), ours, group=group)
    return found.to(block.device)


def _digest(facts: dict[str, str]) -> int:
    return int.from_bytes(hashlib.blake2b(json.dumps(facts).encode(), digest_size=8).digest(), "little", signed=True)


def _reasons(facts: dict[str, str]) -> Tensor:
    text = json.dumps({name: value[:_LONGEST] for name, value in facts.items()}).encode()[:_REASONS].ljust(_REASONS)
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _difference(reasons: Tensor) -> RanksDifferError:
    """Say what the ranks do not agree on, in the same words on each of them."""
    found = [json.loads(bytes(said.tolist())) for said in reasons]
    for rank, said in enumerate(found):
        if "" in said:
            return RanksDifferError(f"rank {rank} of the group could not take part: {said['']}")
    for name, first in found[0].items():
        for rank, said in enumerate(found):
            if said.get(name) != first:
                return RanksDifferError(
                    f"{name} must be the same on every rank of the group, but rank 0 has {first} and rank {rank} has "
                    f"{said.get(name)}; pass parts of the same rows, and the same options"
                )
    return RanksDifferError("the ranks of the group differ in a long argument; pass the same options on every rank")
