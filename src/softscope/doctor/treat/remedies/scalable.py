"""Scalable softmax: multiplies logits by s·log n, so that rows with many keys stay as sharp as short ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softscope._text import Text
from softscope.doctor.treat.code import call
from softscope.doctor.treat.remedies.options import change
from softscope.doctor.treat.remedies.places import named
from softscope.nn.options import check_scalable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from softscope.doctor.treat.remedies.applied import Applied


def scalable(model: nn.Module, sites: Iterable[str] | None = None, *, length: float) -> Applied:
    """Multiply the logits of a row that sees n keys by s·log n; s is learned per head and starts at 1/log(length).

    Args:
        model: changed in place.
        sites: names as in `scope.sites`; None for all known sites.
        length: the number of keys that rows saw in training; rows of this length do not change.

    >>> import torch
    >>> from softscope.doctor import remedies
    >>> remedies.scalable(torch.nn.MultiheadAttention(8, 2), length=512).changes[0].what.en
    'scalable softmax, unchanged at 512 keys'
    """
    check_scalable(length)
    sites = named(sites)
    return change(
        "scalable", model, sites,
        Text(
            zh=f"可伸缩 softmax，{length:g} 个键时不变", en=f"scalable softmax, unchanged at {length:g} keys"
        ),
        {"scalable": length}, code=call("remedies.scalable", sites, length=length),
    )  # fmt: skip
