"""The keys and values of all ranks, for the rows of a call whose own rank holds only some of them.

They are fetched when a call is read and dropped after it, so a rank never holds more than those of one layer. All ranks
of the group fetch them at the same moment: attention over shards keeps them in step, and they agree on each call first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softscope.doctor.read.kept_rows import KeptRows


class AllKeys(NamedTuple):
    """Keys and values of the whole sequence in order, and which of its positions this rank holds."""

    k: Tensor
    v: Tensor
    places: Sequence[int]


def agreed(group: Any, fine: bool) -> bool:
    """Whether it is fine on every rank of the group; all of them must ask."""
    from softscope.distributed._group import device_of

    answer = torch.tensor(int(fine), device=device_of(group))
    torch.distributed.all_reduce(answer, torch.distributed.ReduceOp.MIN, group=group)
    return bool(answer)


def fetch(kept: KeptRows) -> AllKeys | None:
    """The keys of all ranks; None if they are all here. Every rank that shares them must call it."""
    shards, call = kept.observed.shards, kept.call
    if shards is None or call is None or call.v is None:
        return None
    from softscope.distributed._layout import joined  # imported here: most models have all their keys in one place

    k, mine = joined(call.k, shards.group, -2, shards.layout)
    v, _ = joined(call.v, shards.group, -2, shards.layout)
    return AllKeys(k, v, [place for part in mine for place in part])


def with_all_keys(kept: KeptRows, keys: AllKeys | None) -> KeptRows:
    """The same rows, with the keys and values of the whole sequence, and their own positions among them."""
    if keys is None or kept.call is None:
        return kept
    at = torch.tensor([keys.places[number] for number in kept.numbers], device=kept.rows.device)
    options = dataclasses.replace(kept.call.options, positions=at)
    return dataclasses.replace(
        kept,
        observed=dataclasses.replace(
            kept.observed, m=keys.k.shape[-2], places=keys.places, real=None, tokens=None, first=False
        ),
        call=dataclasses.replace(kept.call, k=keys.k, v=keys.v, options=options),
        known_keys=None,
    )
