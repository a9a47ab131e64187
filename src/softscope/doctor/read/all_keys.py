"""The keys and values of all ranks, for the rows of a call whose own rank holds only some of them.

They are fetched when a call is read and dropped after it, so a rank never holds more than those of one layer. Every
rank of the group fetches them at the same moment: attention over shards keeps the ranks in step.
"""

from __future__ import annotations

import dataclasses

import torch

from softscope.doctor.read.kept_rows import KeptRows


def with_all_keys(kept: KeptRows) -> KeptRows:
    """The same rows, with the keys and values of the whole sequence in order, and their own positions among them."""
    shards, call = kept.observed.shards, kept.call
    if shards is None or call is None or call.v is None:
        return kept
    from softscope.distributed._layout import joined  # imported here: most models have all their keys in one place

    k, mine = joined(call.k, shards.group, -2, shards.layout)
    v, _ = joined(call.v, shards.group, -2, shards.layout)
    places = [place for part in mine for place in part]
    at = torch.tensor([places[number] for number in kept.numbers], device=kept.rows.device)
    options = dataclasses.replace(call.options, positions=at)
    return dataclasses.replace(
        kept,
        observed=dataclasses.replace(kept.observed, m=k.shape[-2], places=places, real=None, tokens=None, first=False),
        call=dataclasses.replace(call, k=k, v=v, options=options),
        known_keys=None,
    )
